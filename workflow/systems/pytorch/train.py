"""Train with PyTorch: one process per device, started by torchrun."""

import hashlib
import itertools
import os
import platform
import resource

import steplog
import torch
import torch.distributed as dist
from model import ResNet50
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from data import SOURCES, batches

RANK = int(os.environ.get("RANK", "0"))
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", "0"))
WORLD_SIZE = int(os.environ.get("WORLD_SIZE", "1"))

LOSS_SCALES = {
    "none": {"enabled": False},
    "static": {"init_scale": 128.0, "growth_interval": 2**31 - 1},  # never grows
    "dynamic": {},
}


def main():
    flags = steplog.parse_flags()
    log = steplog.StepLog(flags, RANK, WORLD_SIZE)
    with log.to_the_end():
        train(flags, log)


def train(flags, log):
    precision, scaler = make_precision(flags)
    device = prepare_device(flags)
    data = on_device(input_batches(flags, device), device)
    torch.manual_seed(flags.seed)
    network = ResNet50().to(device, memory_format=torch.channels_last)
    optimizer = make_optimizer(network, log.global_batch)
    model = distribute(network, device)
    if flags.compile:
        model = torch.compile(model)
    log.configured(
        parameters=sum(weight.numel() for weight in network.parameters()),
        framework=f"torch {torch.__version__}",
        versions=versions(),
        devices=of_all_ranks(device_name(device)),
    )
    for iteration in range(1, flags.iterations + 1):
        images, labels = next(data)
        with precision:
            loss = nn.functional.cross_entropy(
                model(images), labels, label_smoothing=steplog.LABEL_SMOOTHING
            )
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if log.prints(iteration):
            # Fetching the loss waits for all that was queued before, so for the whole iteration.
            log.step(iteration, loss.item())
    log.finished(of_all_ranks(digest(network)), of_all_ranks(peak_memory(device)))
    if dist.is_initialized():
        dist.barrier()


def prepare_device(flags):
    """This process's device, ready, and connected to the other ranks' where there are any."""
    torch.set_num_threads(flags.threads)
    if flags.device == "cpu":
        steplog.keep_to_own_cores(RANK, flags.threads)
        device = torch.device("cpu")
    else:
        device = torch.device("cuda", LOCAL_RANK)
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = False  # fp32 is fp32; for matmul it is off already
    if WORLD_SIZE > 1:
        dist.init_process_group("gloo" if flags.device == "cpu" else "nccl")
    return device


def make_optimizer(network, global_batch):
    """SGD that decays all weights and the classifier's bias, but not batch norm."""
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    of_norms = {weight for norm in norms for weight in norm.parameters()}
    others = [weight for weight in network.parameters() if weight not in of_norms]
    return torch.optim.SGD(
        [{"params": others, "weight_decay": steplog.WEIGHT_DECAY}, {"params": list(of_norms)}],
        lr=steplog.learning_rate(global_batch),
        momentum=steplog.MOMENTUM,
        fused=True,
    )


def make_precision(flags):
    """The autocast context and the gradient scaler.

    Mixed precision is bfloat16, or float16 on a GPU where a loss scale is asked for.
    """
    scaled = flags.loss_scale != "none"
    if scaled and (flags.device, flags.precision) != ("cuda", "amp"):
        raise steplog.Refused("--loss-scale is for float16, which needs --device cuda and amp")
    dtype = torch.float16 if scaled else torch.bfloat16
    precision = torch.autocast(flags.device, dtype, enabled=flags.precision == "amp")
    return precision, torch.amp.GradScaler(flags.device, **LOSS_SCALES[flags.loss_scale])


def distribute(network, device):
    """The model whose gradients are averaged over the ranks."""
    if WORLD_SIZE == 1:
        return network
    return DistributedDataParallel(
        network,
        device_ids=[device] if device.type == "cuda" else None,
        forward_sync_buffers=False,  # each rank's batch norm sees its own batches
        gradient_as_bucket_view=True,
        static_graph=True,
    )


def input_batches(flags, device):
    """Endless batches of uint8 images [N, H, W, 3] and labels [N], in host or device memory."""
    if flags.input != "synthetic":
        source = SOURCES[flags.input](flags.data, RANK, WORLD_SIZE)
        return batches(source, flags, RANK, device)
    draw = torch.Generator(device).manual_seed(flags.seed + RANK)
    shape = (flags.batch_size, flags.image_size, flags.image_size, 3)
    images = torch.randint(256, shape, generator=draw, dtype=torch.uint8, device=device)
    labels = torch.randint(1000, shape[:1], generator=draw, device=device)
    return itertools.repeat((images, labels))


def on_device(data, device):
    """Batches on the device; a GPU copies the next one while it trains on this one."""
    if device.type == "cpu":
        yield from data
    copier, trainer = torch.cuda.Stream(device), torch.cuda.current_stream(device)

    def copy(batch):
        with torch.cuda.stream(copier):
            return [tensor.to(device, non_blocking=True) for tensor in batch]

    ahead = copy(next(data))
    while True:
        trainer.wait_stream(copier)
        for tensor in ahead:
            tensor.record_stream(trainer)
        batch, ahead = ahead, copy(next(data))
        yield batch


def of_all_ranks(value):
    """What each rank gave, in the order of ranks."""
    if WORLD_SIZE == 1:
        return [value]
    values = [None] * WORLD_SIZE
    dist.all_gather_object(values, value)
    return values


def digest(network):
    """A short digest of all weights."""
    seen = hashlib.sha256()
    for weight in network.parameters():
        seen.update(weight.detach().cpu().contiguous().numpy())
    return seen.hexdigest()[:16]


def peak_memory(device):
    """Bytes: the most that torch took of a GPU, or that this process took of the memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def device_name(device):
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def versions():
    found = {"python": platform.python_version(), "torch": torch.__version__}
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
        found["cudnn"] = str(torch.backends.cudnn.version())
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    return found


if __name__ == "__main__":
    main()
