"""Training any model with PyTorch: one process per device, started by torchrun."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from trainers.contract import process
from trainers.contract.precision import DYNAMIC, precision_of
from trainers.contract.rank import training
from trainers.contract.recipe import decay_groups, optimizer_of
from trainers.contract.steplog import Refused
from trainers.contract.weights import digest, initial_weights
from trainers.frameworks.torch.inputs import on_device, synthetic_batches

RANK = int(os.environ.get("RANK", "0"))
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", "0"))
WORLD_SIZE = int(os.environ.get("WORLD_SIZE", "1"))

MIXED = {"cpu": ("bfloat16",), "cuda": ("float16", "bfloat16")}
"""The data types in which torch mixes precisions, by device."""


def torch_sgd(groups, **settings):
    """torch's own SGD, in one kernel."""
    return torch.optim.SGD(groups, fused=True, **settings)


def run(recipe, model, batches, *, make_sgd=torch_sgd):
    """Train as the flags say.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.
        model: makes, from the flags, a module that takes a batch and returns its mean loss; its
            parameters have the order and the sizes of the recipe's weight_shapes.
        batches: reads data: returns, for flags, rank, world size and device, endless batches.
        make_sgd: makes the optimizer from parameter groups, a learning rate and a momentum.
    """
    with training(recipe, RANK, WORLD_SIZE) as (flags, log):
        train(recipe, flags, log, make_model=model, make_batches=batches, make_sgd=make_sgd)


def train(recipe, flags, log, *, make_model, make_batches, make_sgd):
    """Train as `run` says, and log it."""
    precision = precision_of(recipe, flags, MIXED)
    scaler = make_scaler(precision, flags)
    device = prepare_device(flags)
    if flags.input == "synthetic":
        data = synthetic_batches(recipe, flags, RANK, device)
    else:
        data = make_batches(flags, RANK, WORLD_SIZE, device)
    data = on_device(data, device)
    network = make_model(flags)
    start_from(network, recipe, flags)
    network.to(device, memory_format=torch.channels_last)
    optimizer = make_sgd(
        decay_groups(recipe, flags, network.parameters()),
        lr=recipe.learning_rate(log.global_batch),
        momentum=optimizer_of(recipe, flags).momentum,
    )
    model = distribute(network, device)
    if flags.compile:
        model = torch.compile(model)
    log.configured(
        parameters=sum(weight.numel() for weight in network.parameters()),
        framework=f"torch {torch.__version__}",
        versions={**versions(), "optimizer": name_of(optimizer)},
        devices=of_all_ranks(device_name(device)),
        precision=precision,
    )
    mixed = torch.autocast(
        flags.device, getattr(torch, precision.compute), enabled=flags.precision == "amp"
    )
    for iteration in range(1, flags.iterations + 1):
        batch = next(data)
        with mixed:
            loss = model(*batch)
        optimizer.zero_grad()  # to None, by torch's default and by apex's
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if log.prints(iteration):
            # Fetching the loss waits for all that was queued before: the whole iteration.
            log.step(iteration, loss.item())
    weights = (weight.detach().cpu().numpy() for weight in network.parameters())
    log.finished(of_all_ranks(digest(weights)), of_all_ranks(peak_memory(device)))
    if dist.is_initialized():
        dist.barrier()


def start_from(network, recipe, flags):
    """Give a model the recipe's weights."""
    with torch.no_grad():
        start = initial_weights(recipe, flags)
        for weight, (_, value) in zip(network.parameters(), start, strict=True):
            weight.copy_(torch.from_numpy(value))


def prepare_device(flags):
    """This process's device, ready for use and connected to those of other ranks, if any."""
    torch.set_num_threads(flags.threads)
    if flags.device == "cpu":
        process.keep_to_own_cores(RANK, flags.threads)
        device = torch.device("cpu")
    elif torch.cuda.device_count() <= LOCAL_RANK:
        raise Refused(
            f"torch sees {torch.cuda.device_count()} GPUs, local rank {LOCAL_RANK} needs another; "
            "allowed: a build for GPUs, such as the image of envs/pytorch.image.yaml, on GPUs"
        )
    else:
        device = torch.device("cuda", LOCAL_RANK)
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = False  # fp32 means fp32; for matmul it is already off
    torch.manual_seed(flags.seed + RANK)  # for dropout
    if WORLD_SIZE > 1:
        if flags.device == "cpu":
            dist.init_process_group("gloo")
        else:
            dist.init_process_group("nccl", device_id=device)
    return device


def make_scaler(precision, flags):
    """The scaler of the loss, which does nothing where none is needed."""
    if precision.loss_scale is None:
        return torch.amp.GradScaler(flags.device, enabled=False)
    if precision.loss_scale == DYNAMIC:
        return torch.amp.GradScaler(flags.device)
    # So long an interval that it never grows.
    return torch.amp.GradScaler(
        flags.device, init_scale=precision.loss_scale, growth_interval=2**31 - 1
    )


def distribute(network, device):
    """The model, with gradients averaged over the ranks."""
    if WORLD_SIZE == 1:
        return network
    model = DistributedDataParallel(
        network,
        device_ids=[device] if device.type == "cuda" else None,
        gradient_as_bucket_view=True,
        static_graph=True,
    )
    # Each rank's batch norm sees its own batches. As an argument it has other names in other
    # versions of torch.
    model.broadcast_buffers = False
    return model


def of_all_ranks(value):
    """The value of each rank, in the order of ranks."""
    if WORLD_SIZE == 1:
        return [value]
    values = [None] * WORLD_SIZE
    dist.all_gather_object(values, value)
    return values


def peak_memory(device):
    """Bytes: the most GPU memory that torch used, or main memory that this process used."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return process.peak_memory()


def name_of(optimizer):
    """Where the optimizer comes from, such as "torch.optim.SGD"."""
    kind = type(optimizer)
    return f"{kind.__module__.rpartition('.')[0]}.{kind.__name__}"


def device_name(device):
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def versions():
    found = {"python": process.python_version(), "torch": torch.__version__}
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
        found["cudnn"] = str(torch.backends.cudnn.version())
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    return found
