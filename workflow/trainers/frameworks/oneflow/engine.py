"""Training with OneFlow, after it has been imported: one static graph for the whole iteration."""

import json
import platform
import resource
import time

import numpy as np
import oneflow as flow
import resnet50
from batches import input_batches
from model import ResNet50
from oneflow import nn, sysconfig
from steplog import Refused

RANK = flow.env.get_rank()
WORLD_SIZE = flow.env.get_world_size()


def train(flags, log):
    """Train as the flags say."""
    scaler = make_scaler(flags)
    prepare_device(flags)
    batches = input_batches(flags, RANK, WORLD_SIZE)
    model = ResNet50(flags.seed, fused=flags.precision == "amp")
    model.to_global(flow.placement.all(flags.device), flow.sbp.broadcast)
    optimizer = make_optimizer(model, log.global_batch)
    iterate = Iteration(flags.precision == "amp", model, batches, optimizer, scaler)
    log.configured(
        parameters=sum(weight.numel() for weight in model.parameters()),
        framework=f"oneflow {flow.__version__}",
        versions=versions(flags),
        devices=of_all_ranks(device_name(flags)),
    )
    for iteration in range(1, flags.iterations + 1):
        losses = iterate()
        if log.prints(iteration):
            # A graph's outputs can be fetched before it has come to its end.
            flow._oneflow_internal.eager.Sync()
            log.step(iteration, losses.to_local().numpy().mean().item())
    log.finished(of_all_ranks(digest(model)), of_all_ranks(peak_memory(flags)))
    leave_together()


class Iteration(nn.Graph):
    """A call trains on a batch and returns each image's loss, [N of all ranks], split over them."""

    def __init__(self, mixed_precision, model, batches, optimizer, scaler):
        super().__init__()
        self.model, self.batches = model, batches
        self.normalize = nn.CropMirrorNormalize(
            color_space="RGB", mean=resnet50.MEAN, std=resnet50.STD
        )
        self.add_optimizer(optimizer)
        self.config.enable_amp(mixed_precision)
        self.config.allow_fuse_add_to_output(True)
        self.config.allow_fuse_model_update_ops(True)
        if scaler:
            self.set_grad_scaler(scaler)

    def build(self):
        images, labels, *mirrored = self.batches()
        logits = self.model(self.normalize(images, *mirrored))
        losses = nn.functional.cross_entropy(
            logits, labels, reduction="none", label_smoothing=resnet50.LABEL_SMOOTHING
        )
        losses.mean().backward()
        return losses


def make_scaler(flags):
    """The scaler of the loss, or None; mixed precision is float16."""
    mixed = flags.precision == "amp"
    if mixed and flags.device == "cpu":
        raise Refused("--precision amp changes nothing in OneFlow on a CPU; allowed: fp32")
    if flags.loss_scale == "none":
        return None
    if not mixed:
        raise Refused("--loss-scale is for float16, which needs --device cuda and amp")
    if flags.loss_scale == "static":
        return flow.amp.StaticGradScaler(resnet50.STATIC_LOSS_SCALE)
    return flow.amp.GradScaler()


def prepare_device(flags):
    """Set up this process's device; which of the node's GPUs it is, OneFlow knows itself."""
    if flags.device == "cpu":
        flow.set_num_threads(flags.threads)
    elif not flow.cuda.is_available():
        raise Refused("oneflow sees no GPU; run the image of envs/oneflow.image.yaml")
    else:
        flow.backends.cudnn.enable_conv_heuristic_search_algo(False)  # try all, take the fastest


def make_optimizer(model, global_batch):
    """SGD that decays all weights and the classifier's bias, but not batch norm."""
    groups = {True: [], False: []}
    for name, weight in zip(model.names, model.parameters(), strict=True):
        groups[resnet50.decays(name)].append(weight)
    return flow.optim.SGD(
        [
            {"params": groups[True], "weight_decay": resnet50.WEIGHT_DECAY},
            {"params": groups[False], "weight_decay": 0.0},
        ],
        lr=resnet50.learning_rate(global_batch),
        momentum=resnet50.MOMENTUM,
    )


def of_all_ranks(value):
    """What each rank gave, in the order of ranks; anything that takes 256 bytes as JSON."""
    said = np.frombuffer(json.dumps(value).encode().ljust(256), np.uint8)
    rows = flow.tensor(said).unsqueeze(0)
    rows = rows.to_global(flow.placement.all("cpu"), flow.sbp.split(0))
    rows = rows.to_global(sbp=flow.sbp.broadcast).to_local().numpy()
    return [json.loads(row.tobytes()) for row in rows]


def leave_together():
    """Wait until all ranks are here; the first one, whose server they ask for that, goes last."""
    flow.comm.barrier()
    if RANK == 0 and WORLD_SIZE > 1:
        time.sleep(1)  # or it may be gone before the others have the server's answer, and abort


def digest(model):
    """A short digest of this rank's copy of all weights."""
    return resnet50.digest(weight.to_local().numpy() for weight in model.parameters())


def peak_memory(flags):
    """Bytes: all that is in use on a GPU, or the most that this process took of the memory.

    OneFlow counts no peak; a graph takes its memory when it is compiled, and keeps it.
    """
    if flags.device == "cuda":
        return int(flow._oneflow_internal.GetCUDAMemoryUsed() * 2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def device_name(flags):
    return flow.cuda.get_device_name() if flags.device == "cuda" else "cpu"


def versions(flags):
    found = {"python": platform.python_version(), "oneflow": flow.__version__}
    if flags.device == "cuda":
        found["cuda"] = str(sysconfig.get_cuda_version())
    found["precision"] = "float16" if flags.precision == "amp" else "float32"
    return found
