"""Training any model with OneFlow: one process per device, one static graph for an iteration.

Importing this imports OneFlow: see trainers/frameworks/oneflow/before.py.
"""

import json
import re
import time

import numpy as np
import oneflow as flow
from oneflow import nn, sysconfig

from trainers.contract import process
from trainers.contract.precision import DYNAMIC, precision_of
from trainers.contract.recipe import AdamW, decay_groups, dropout_of, optimizer_of
from trainers.contract.steplog import Refused
from trainers.contract.weights import Watched, with_start
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
    if flags.load_only is not None:
        load_only(log, batches)
    model = make_model(flags)
    start_from(model, recipe, flags)
    model.to_global(flow.placement.all(flags.device), flow.sbp.broadcast)
    # This rank's own copy of all weights.
    watched = Watched(log, lambda: (one.to_local().numpy() for one in model.parameters()))
    optimizer = make_optimizer(model, recipe, flags, log.global_batch)
    counts = getattr(recipe, "counts", None)
    clip = getattr(optimizer_of(recipe, flags), "clip", None) if clips_itself(flags) else None
    iterate = Training(precision, model, batches, optimizer, counts, clip=clip)
    log.configured(
        parameters=sum(weight.numel() for weight in model.parameters()),
        framework=f"oneflow {flow.__version__}",
        versions=versions(flags),
        devices=of_all_ranks(device_name(flags)),
        precision=precision,
    )
    if dropout_of(recipe, flags):
        # Its reader begins at the first batch, and so does the one of training. The graph stays to
        # the end: OneFlow aborts if a rank gives up a graph while another still sends to it.
        model.eval()
        judge = Losses(precision, model, batches)
        log.without_dropout(own_mean(judge()))
        model.train()
    counts = {}
    for iteration in range(1, flags.iterations + 1):
        losses, counted = iterate()
        # Added up on the device, which nothing waits for.
        counts = {unit: counts.get(unit, 0) + count for unit, count in counted.items()}
        if log.prints(iteration):
            # A graph's outputs can be fetched before the graph has finished.
            flow._oneflow_internal.eager.Sync()
            loss = own_mean(losses)
            log.step(iteration, loss, **{unit: total(one) for unit, one in counts.items()})
    digests, peaks = of_all_ranks(watched.digest()), of_all_ranks(peak_memory(flags))
    log.finished(digests, peaks, watched.changes())
    leave_together()


def load_only(log, batches):
    """Take batches, and train nothing."""
    read = Reading(batches)

    def take():
        read()
        flow._oneflow_internal.eager.Sync()

    try:
        log.load(take)
    finally:
        leave_together()


class Reading(nn.Graph):
    """Each call takes one batch."""

    def __init__(self, batches):
        super().__init__()
        self.batches = batches

    def build(self):
        return self.batches()


class Losses(nn.Graph):
    """Each call takes one batch and returns the model's losses, split over the ranks."""

    def __init__(self, precision, model, batches):
        super().__init__()
        self.model, self.batches = model, batches
        self.config.enable_amp(precision.compute == "float16")
        self.config.allow_fuse_add_to_output(True)

    def build(self):
        return self.model(*self.batches())


class Training(Losses):
    """Each call trains on one batch.

    It returns the model's losses and, by their units, what the recipe's `counts`, if it has them,
    counts in the batch of all ranks.

    Args:
        clip: the norm to which all gradients together are scaled down if theirs is larger; None:
            they are not, or the optimizer does it.
    """

    def __init__(self, precision, model, batches, optimizer, counts, *, clip):
        super().__init__(precision, model, batches)
        self.counts = counts
        self._weights = list(model.parameters())
        # Gradients still have the loss's scale when they are clipped here.
        self._clip = clip and clip * (precision.loss_scale or 1.0)
        self.add_optimizer(optimizer)
        self.config.allow_fuse_model_update_ops(True)
        if precision.loss_scale is not None:
            self.set_grad_scaler(make_scaler(precision.loss_scale))

    def build(self):
        batch = self.batches()
        losses = self.model(*batch)
        losses.mean().backward()
        if self._clip is not None:
            clip_together(self._weights, self._clip)
        counted = self.counts(batch) if self.counts else {}
        return losses, {unit: count.to(flow.int64) for unit, count in counted.items()}


def clips_itself(flags):
    """Whether gradients are clipped here, and not by OneFlow's optimizer.

    On a CPU that adds up square by square in float32: of 23 million numbers, as many as BERT-base's
    embedding has, its norm is up to 2.5 % too small. That of `flow.dot` is within 2e-6, and faster.
    """
    return flags.device == "cpu"


def clip_together(weights, most):
    """Within a graph, scale all gradients down so that their norm together is within a limit.

    Args:
        weights: global tensors, with the lazy gradients of this rank's part of the loss.
        most: the norm.
    """
    gradients = [weight.grad.to_global(sbp=flow.sbp.broadcast) for weight in weights]
    flat = [gradient.reshape(-1) for gradient in gradients]
    norm = flow.stack([flow.dot(one, one) for one in flat]).sum().sqrt()
    share = (most / (norm + 1e-6)).clamp(max=1.0)
    for weight, gradient in zip(weights, gradients):
        weight.grad = gradient * share


def own_mean(losses):
    """The mean of this rank's losses."""
    return losses.to_local().numpy().mean().item()


def total(count):
    """A number of which each rank may hold a part."""
    return count.to_global(sbp=flow.sbp.broadcast).to_local().item()


def start_from(model, recipe, flags):
    """Give a model the recipe's weights."""
    with flow.no_grad():
        for weight, _, value in with_start(model.parameters(), recipe, flags):
            last = CHANNELS_LAST and value.ndim == 4  # filters, [out, in, height, width]
            weight.copy_(flow.tensor(value.transpose(0, 2, 3, 1) if last else value))


def make_optimizer(model, recipe, flags, global_batch):
    """The recipe's optimizer for a model whose weights are global."""
    asked = optimizer_of(recipe, flags)
    rate = recipe.learning_rate(global_batch)
    groups = decay_groups(recipe, flags, model.parameters())
    if isinstance(asked, AdamW):
        if clips_itself(flags):
            asked = asked._replace(clip=None)
        return AdamWOfOneGroup(groups, rate, asked)
    return flow.optim.SGD(groups, lr=rate, momentum=asked.momentum)


class AdamWOfOneGroup(flow.optim.AdamW):
    """AdamW that clips all gradients by one norm, where OneFlow clips each group by its own.

    So all weights are in one group, of which not all decay.

    Args:
        groups: dictionaries of "params" and "weight_decay", which is 0.0 or the one that is asked.
        rate: the learning rate.
        asked: an AdamW of trainers.contract.recipe.
    """

    def __init__(self, groups, rate, asked):
        decaying = (group["params"] for group in groups if group["weight_decay"])
        self._decaying = {id(one) for weights in decaying for one in weights}
        whole = {"params": [one for group in groups for one in group["params"]]}
        if asked.clip is not None:
            whole.update(clip_grad_max_norm=asked.clip, clip_grad_norm_type=2.0)
        betas = asked.beta1, asked.beta2
        super().__init__(
            [whole], lr=rate, betas=betas, eps=asked.epsilon, weight_decay=asked.weight_decay
        )

    def _generate_conf_for_graph(self, train_conf, vars_conf):
        made = super()._generate_conf_for_graph(train_conf, vars_conf)
        names = (one.name for weight, one in vars_conf.items() if id(weight) in self._decaying)
        made[0].weight_decay_conf.includes.pattern.extend(f"^{re.escape(name)}$" for name in names)
        return made


def make_scaler(loss_scale):
    if loss_scale == DYNAMIC:
        return flow.amp.GradScaler()
    return flow.amp.StaticGradScaler(loss_scale)


def prepare_device(flags):
    """Set up this process's device; OneFlow itself knows which of the node's GPUs it is."""
    if flags.device == "cpu":
        flow.set_num_threads(flags.threads)
    elif not flow.cuda.is_available():
        raise Refused(
            "oneflow sees no GPU; allowed: a build for GPUs, such as the image of "
            "envs/oneflow.image.yaml, on GPUs"
        )
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
