"""Training with PyTorch, for the systems that do: one process per device, started by torchrun."""

import os
import platform
import resource

import resnet50
import steplog
import torch
import torch.distributed as dist
from pytorch.data import on_device
from pytorch.model import ResNet50
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANK = int(os.environ.get("RANK", "0"))
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", "0"))
WORLD_SIZE = int(os.environ.get("WORLD_SIZE", "1"))

LOSS_SCALES = {
    "none": {"enabled": False},
    # It never grows.
    "static": {"init_scale": resnet50.STATIC_LOSS_SCALE, "growth_interval": 2**31 - 1},
    "dynamic": {},
}


def run(input_batches, sgd):
    """Train as the flags say.

    Args:
        input_batches: gives, for flags, rank, world size and device, endless batches of uint8
            images [N, H, W, 3] and labels [N].
        sgd: makes the optimizer of parameter groups, a learning rate and a momentum.
    """
    flags = steplog.parse_flags()
    log = steplog.StepLog(flags, RANK, WORLD_SIZE)
    with log.to_the_end():
        train(flags, log, input_batches, sgd)


def train(flags, log, input_batches, sgd):
    precision, scaler = make_precision(flags)
    device = prepare_device(flags)
    data = on_device(input_batches(flags, RANK, WORLD_SIZE, device), device)
    network = ResNet50(flags.seed).to(device, memory_format=torch.channels_last)
    optimizer = make_optimizer(network, log.global_batch, sgd)
    model = distribute(network, device)
    if flags.compile:
        model = torch.compile(model)
    log.configured(
        parameters=sum(weight.numel() for weight in network.parameters()),
        framework=f"torch {torch.__version__}",
        versions={**versions(), "optimizer": name_of(optimizer)},
        devices=of_all_ranks(device_name(device)),
    )
    for iteration in range(1, flags.iterations + 1):
        images, labels = next(data)
        with precision:
            loss = nn.functional.cross_entropy(
                model(images), labels, label_smoothing=resnet50.LABEL_SMOOTHING
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


def make_optimizer(network, global_batch, sgd):
    """SGD that decays all weights and the classifier's bias, but not batch norm."""
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    of_norms = {weight for norm in norms for weight in norm.parameters()}
    others = [weight for weight in network.parameters() if weight not in of_norms]
    return sgd(
        [
            {"params": others, "weight_decay": resnet50.WEIGHT_DECAY},
            {"params": list(of_norms), "weight_decay": 0.0},
        ],
        lr=resnet50.learning_rate(global_batch),
        momentum=resnet50.MOMENTUM,
    )


def torch_sgd(groups, **settings):
    """torch's own SGD, in one kernel."""
    return torch.optim.SGD(groups, fused=True, **settings)


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


def of_all_ranks(value):
    """What each rank gave, in the order of ranks."""
    if WORLD_SIZE == 1:
        return [value]
    values = [None] * WORLD_SIZE
    dist.all_gather_object(values, value)
    return values


def digest(network):
    """A short digest of all weights."""
    return resnet50.digest(weight.detach().cpu().numpy() for weight in network.parameters())


def peak_memory(device):
    """Bytes: the most that torch took of a GPU, or that this process took of the memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def name_of(optimizer):
    """Where the optimizer comes from, such as "torch.optim.SGD"."""
    kind = type(optimizer)
    return f"{kind.__module__.rpartition('.')[0]}.{kind.__name__}"


def device_name(device):
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def versions():
    found = {"python": platform.python_version(), "torch": torch.__version__}
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
        found["cudnn"] = str(torch.backends.cudnn.version())
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    return found
