"""Training any model with OneFlow: one process per device, one static graph for an iteration.

Importing this imports OneFlow: see trainers/frameworks/oneflow/before.py.
"""

import json
import time

import numpy as np
import oneflow as flow
from oneflow import nn, sysconfig

from trainers.contract import process
from trainers.contract.precision import DYNAMIC, precision_of
from trainers.contract.recipe import decay_groups, optimizer_of
from trainers.contract.steplog import Refused
from trainers.contract.weights import digest, initial_weights
from trainers.frameworks.oneflow.images import CHANNELS_LAST
from trainers.frameworks.oneflow.inputs import FixedBatch

RANK = flow.env.get_rank()
WORLD_SIZE = flow.env.get_world_size()

MIXED = {"cuda": ("float16",)}
"""The data types in which OneFlow mixes precisions, by device: on a CPU its AMP changes nothing."""


def train(recipe, flags, log, *, make_model, make_batches):
    """Train as the flags say.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.
        flags: what parse_flags returned.
        log: this rank's step log.
        make_model: makes, from the flags, a module that takes the batch of all ranks and returns
            losses [n], split evenly over the ranks; their mean is the loss. Its parameters have the
            order and the sizes of the recipe's weight_shapes, except that filters have their
            channels last if images do.
        make_batches: makes, from flags, rank and world size, a module that reads data and returns
            the batch of all ranks.
    """
    precision = precision_of(recipe, flags, MIXED)
    prepare_device(flags)
    if flags.input == "synthetic":
        batches = FixedBatch(recipe, flags, RANK)
    else:
        batches = make_batches(flags, RANK, WORLD_SIZE)
    model = make_model(flags)
    start_from(model, recipe, flags)
    model.to_global(flow.placement.all(flags.device), flow.sbp.broadcast)
    optimizer = make_optimizer(model, recipe, flags, log.global_batch)
    iterate = Iteration(precision, model, batches, optimizer)
    log.configured(
        parameters=sum(weight.numel() for weight in model.parameters()),
        framework=f"oneflow {flow.__version__}",
        versions=versions(flags),
        devices=of_all_ranks(device_name(flags)),
        precision=precision,
    )
    for iteration in range(1, flags.iterations + 1):
        losses = iterate()
        if log.prints(iteration):
            # A graph's outputs can be fetched before the graph has finished.
            flow._oneflow_internal.eager.Sync()
            log.step(iteration, losses.to_local().numpy().mean().item())
    # This rank's own copy of all weights.
    weights = (weight.to_local().numpy() for weight in model.parameters())
    log.finished(of_all_ranks(digest(weights)), of_all_ranks(peak_memory(flags)))
    leave_together()


class Iteration(nn.Graph):
    """Each call trains on one batch and returns the model's losses, split over the ranks."""

    def __init__(self, precision, model, batches, optimizer):
        super().__init__()
        self.model, self.batches = model, batches
        self.add_optimizer(optimizer)
        self.config.enable_amp(precision.compute == "float16")
        self.config.allow_fuse_add_to_output(True)
        self.config.allow_fuse_model_update_ops(True)
        if precision.loss_scale is not None:
            self.set_grad_scaler(make_scaler(precision.loss_scale))

    def build(self):
        losses = self.model(*self.batches())
        losses.mean().backward()
        return losses


def start_from(model, recipe, flags):
    """Give a model the recipe's weights."""
    start = initial_weights(recipe, flags)
    with flow.no_grad():
        for weight in model.parameters():
            _, value = next(start)
            last = CHANNELS_LAST and value.ndim == 4  # filters, [out, in, height, width]
            weight.copy_(flow.tensor(value.transpose(0, 2, 3, 1) if last else value))


def make_optimizer(model, recipe, flags, global_batch):
    """SGD for a model whose weights are global."""
    return flow.optim.SGD(
        decay_groups(recipe, flags, model.parameters()),
        lr=recipe.learning_rate(global_batch),
        momentum=optimizer_of(recipe, flags).momentum,
    )


def make_scaler(loss_scale):
    if loss_scale == DYNAMIC:
        return flow.amp.GradScaler()
    return flow.amp.StaticGradScaler(loss_scale)


def prepare_device(flags):
    """Set up this process's device; OneFlow itself knows which of the node's GPUs it is."""
    if flags.device == "cpu":
        flow.set_num_threads(flags.threads)
    elif not flow.cuda.is_available():
        raise Refused("oneflow sees no GPU; run the image of envs/oneflow.image.yaml")
    else:
        flow.backends.cudnn.enable_conv_heuristic_search_algo(False)  # try all, take the fastest
        # As in the DLPerf report's runs of OneFlow.
        flow.boxing.nccl.set_fusion_threshold_mbytes(16)
        flow.boxing.nccl.set_fusion_max_ops_num(24)


def of_all_ranks(value):
    """The value of each rank, in the order of ranks; anything of up to 256 bytes as JSON."""
    said = np.frombuffer(json.dumps(value).encode().ljust(256), np.uint8)
    rows = flow.tensor(said).unsqueeze(0)
    rows = rows.to_global(flow.placement.all("cpu"), flow.sbp.split(0))
    rows = rows.to_global(sbp=flow.sbp.broadcast).to_local().numpy()
    return [json.loads(row.tobytes()) for row in rows]


def leave_together():
    """Wait until all ranks are here; the first, whose server they ask, leaves last."""
    flow.comm.barrier()
    if RANK == 0 and WORLD_SIZE > 1:
        # Else it may be gone before the others have its server's answer, and they abort.
        time.sleep(1)


def peak_memory(flags):
    """Bytes: all GPU memory in use, or the most main memory that this process used.

    OneFlow records no peak; a graph takes its memory when it is compiled, and keeps it.
    """
    if flags.device == "cuda":
        return int(flow._oneflow_internal.GetCUDAMemoryUsed() * 2**20)
    return process.peak_memory()


def device_name(flags):
    return flow.cuda.get_device_name() if flags.device == "cuda" else "cpu"


def versions(flags):
    found = {"python": process.python_version(), "oneflow": flow.__version__}
    if flags.device == "cuda":
        found["cuda"] = str(sysconfig.get_cuda_version())
    return found
