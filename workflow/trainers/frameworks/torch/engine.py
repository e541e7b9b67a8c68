"""Training any model with PyTorch: one process per device, started by torchrun."""

import inspect
import itertools
import math
import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from trainers.contract import process
from trainers.contract.counts import Counts
from trainers.contract.precision import precision_of
from trainers.contract.rank import training
from trainers.contract.recipe import AdamW, decay_groups, dropout_of, optimizer_of
from trainers.contract.steplog import Refused
from trainers.contract.weights import Watched, synthetic_batch, with_start
from trainers.frameworks.torch.inputs import again_and_again, on_device, prepared
from trainers.frameworks.torch.scaling import make_scaler

RANK = int(os.environ.get("RANK", "0"))
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", "0"))
WORLD_SIZE = int(os.environ.get("WORLD_SIZE", "1"))

TORCH = tuple(map(int, torch.__version__.split(".")[:2]))
MIXED = {"cpu": ("bfloat16",), "cuda": ("float16", "bfloat16")}
"""The data types in which torch mixes precisions, by device."""

SETTLING = 2
"""Iterations in which cuDNN may ask for more memory than there is, to see what is fastest."""


def torch_optimizer(groups, rate, asked):
    """torch's own optimizer, in one kernel; before torch 2.4, which has none for CPUs, in a few.

    Args:
        groups: dictionaries of "params" and "weight_decay".
        rate: the learning rate.
        asked: an Sgd or an AdamW.
    """
    fused = {"fused": True} if TORCH >= (2, 4) else {}
    if isinstance(asked, AdamW):
        betas = asked.beta1, asked.beta2
        return torch.optim.AdamW(groups, lr=rate, betas=betas, eps=asked.epsilon, **fused)
    return torch.optim.SGD(groups, lr=rate, momentum=asked.momentum, **fused)


def run(recipe, model, batches, *, make_optimizer=torch_optimizer):
    """Train as the flags say.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.
        model: makes, from the flags, a module that takes a batch and returns its mean loss; its
            parameters have the order and the sizes of the recipe's weight_shapes. It may have a
            function `prepared`, of a batch on the host: what it returns is what the module takes.
        batches: reads data: returns, for flags, rank, world size and device, endless batches.
        make_optimizer: as torch_optimizer.
    """
    with training(recipe, RANK, WORLD_SIZE, LOCAL_RANK) as (flags, log):
        train(
            recipe,
            flags,
            log,
            make_model=model,
            make_batches=batches,
            make_optimizer=make_optimizer,
        )


def train(recipe, flags, log, *, make_model, make_batches, make_optimizer):
    """Train as `run` says, and log it."""
    precision = precision_of(recipe, flags, MIXED)
    scaler = make_scaler(precision)
    device = prepare_device(flags)
    counts, network = Counts(recipe), make_model(flags)
    if flags.input == "synthetic":
        batch = synthetic_batch(recipe, flags, RANK)
        counts.always(batch)
        data = again_and_again(batch, network, device)
    else:
        data = counts.of(make_batches(flags, RANK, WORLD_SIZE, device))
        data = prepared(data, network, device)
    data = on_device(data, device)
    if flags.input != "synthetic":
        data = log.timed(data, mark_of(device))
    start_from(network, recipe, flags)
    network.to(device, memory_format=torch.channels_last)  # which matters to convolutions alone
    asked = optimizer_of(recipe, flags)
    weights = list(network.parameters())
    watched = Watched(log, lambda: (weight.detach().cpu().numpy() for weight in weights))
    optimizer = make_optimizer(
        decay_groups(recipe, flags, weights), recipe.learning_rate(log.global_batch), asked
    )
    model = distribute(network, device)
    if flags.compile:
        model = torch.compile(model)
    log.configured(
        parameters=sum(weight.numel() for weight in weights),
        framework=f"torch {torch.__version__}",
        versions={**versions(), "optimizer": name_of(optimizer)},
        devices=of_all_ranks(device_name(device)),
        precision=precision,
    )
    mixed = mixed_by(precision, flags)
    if dropout_of(recipe, flags):
        first = next(data)
        with mixed:
            log.without_dropout(loss_without_dropout(network, first))
        data = itertools.chain([first], data)
    clip = getattr(asked, "clip", None)
    for iteration in iterations_of(flags, device):
        batch = next(data)
        with mixed:
            loss = model(*batch)
        optimizer.zero_grad()  # to None, by torch's default and by apex's
        scaler.scale(loss).backward()
        loss = loss.detach()  # or what it was computed from would lie beside the next one's
        if clip is not None:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(weights, clip)
        scaler.step(optimizer)
        scaler.update()
        if log.prints(iteration):
            # Fetching the loss waits for all that was queued before: the whole iteration.
            log.step(iteration, loss.item(), **of_all_together(counts.after(iteration), device))
    digests, peaks = of_all_ranks(watched.digest()), of_all_ranks(peak_memory(device))
    log.finished(digests, peaks, watched.changes(), allocation_retries(device))
    if dist.is_initialized():
        dist.barrier()


def mixed_by(precision, flags):
    """A context, to be entered for each batch, in which a model computes in that precision."""
    if precision.compute == "float32":
        return nullcontext()
    return torch.autocast(flags.device, getattr(torch, precision.compute))


def loss_without_dropout(network, batch):
    """A batch's loss while nothing is dropped out."""
    network.eval()
    with torch.no_grad():
        loss = network(*batch).item()
    network.train()
    return loss


def mark_of(device):
    """What marks the end of a device's work, as StepLog.timed needs it."""
    if device.type == "cpu":
        return None
    end = torch.cuda.Event()

    def idle_since():
        # A GPU that has finished may have been idle for as long as anybody waited.
        return -math.inf if end.query() else math.inf

    def mark():
        end.record()
        return idle_since

    return mark


def start_from(network, recipe, flags):
    """Give a model the recipe's weights."""
    with torch.no_grad():
        for weight, _, value in with_start(network.parameters(), recipe, flags):
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
        # fp32 means fp32, also in kernels that torch compiles: no library of NVIDIA's is in those.
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(flags.seed + RANK)  # for dropout
    if WORLD_SIZE > 1:
        if flags.device == "cpu":
            dist.init_process_group("gloo")
        else:
            # Older ones, before 2.3, take the current device, which is the same.
            asks = "device_id" in inspect.signature(dist.init_process_group).parameters
            dist.init_process_group("nccl", **({"device_id": device} if asks else {}))
    return device


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


def of_all_together(counts, device):
    """The sums of all ranks' counts."""
    if WORLD_SIZE == 1 or not counts:
        return counts
    sums = torch.tensor(list(counts.values()), device=device)
    dist.all_reduce(sums)
    return dict(zip(counts, sums.tolist()))


def peak_memory(device):
    """Bytes: the most GPU memory that torch used, or main memory that this process used."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return process.peak_memory()


def iterations_of(flags, device):
    """The numbers of all iterations; those that settle are no part of `allocation_retries`."""
    for iteration in range(1, flags.iterations + 1):
        yield iteration
        if iteration == SETTLING and device.type == "cuda":
            torch.cuda.reset_accumulated_memory_stats(device)


def allocation_retries(device):
    """How often each rank's GPU was full, so that torch gave back what it kept, and asked again.

    Returns:
        One number per rank; None on CPUs.
    """
    if device.type == "cpu":
        return None
    return of_all_ranks(torch.cuda.memory_stats(device).get("num_alloc_retries", 0))


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
