"""Training any model with MXNet's Gluon and Horovod: one process per device."""

import ctypes
import itertools
import os
from types import MappingProxyType
from typing import Mapping, NamedTuple

import horovod
import horovod.mxnet as hvd
import mxnet as mx
from mxnet import autograd
from mxnet.contrib import amp

from trainers.contract import process
from trainers.contract.counts import Counts
from trainers.contract.precision import DYNAMIC, precision_of
from trainers.contract.rank import training
from trainers.contract.recipe import dropout_of, optimizer_of
from trainers.contract.steplog import Refused
from trainers.contract.weights import Watched, synthetic_batch, with_start
from trainers.frameworks.horovod import check_horovod
from trainers.frameworks.mxnet.inputs import again_and_again, on_device
from trainers.frameworks.mxnet.marks import Marks
from trainers.frameworks.mxnet.optimizers import Trainer, make_optimizer

RANK = int(os.environ.get("HOROVOD_RANK", "0"))
LOCAL_RANK = int(os.environ.get("HOROVOD_LOCAL_RANK", "0"))
WORLD_SIZE = int(os.environ.get("HOROVOD_SIZE", "1"))

MIXED = {"cpu": ("bfloat16",), "cuda": ("float16",)}
"""The data types in which MXNet mixes precisions, by device."""

LACKS_BFLOAT16 = tuple(f"_contrib_interleaved_matmul_selfatt_{part}" for part in ("qk", "valatt"))
"""What CPUs compute in float32 alone, and MXNet's own list of that lacks."""


class Settings(NamedTuple):
    """What a system sets, whatever it trains."""

    versions: Mapping = MappingProxyType({})
    """The versions of what else it uses, name -> version."""
    gpu_environment: Mapping = MappingProxyType({})
    """Environment variables for GPUs, name -> value; those already set stay."""
    gpu_groups: int = 0
    """The number of groups in which GPUs' gradients are averaged; 0 leaves it to Horovod."""


PLAIN = Settings()


def run(recipe, model, batches, *, settings=PLAIN):
    """Train as the flags say.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.
        model: makes, from flags and device, a HybridBlock that takes a batch and returns its mean
            loss, [1]; its trainable parameters have the order of the recipe's weight_shapes. If it
            holds some in another layout, its `arranged` makes, of a weight's name and start, the
            array that it holds.
        batches: reads data: returns, for flags, rank, world size and device, endless batches of
            arrays of numpy or MXNet.
        settings: what the system sets, whatever it trains.
    """
    with training(recipe, RANK, WORLD_SIZE, LOCAL_RANK) as (flags, log):
        train(recipe, flags, log, make_model=model, make_batches=batches, settings=settings)


def train(recipe, flags, log, *, make_model, make_batches, settings):
    """Train as `run` says, and log it."""
    precision = precision_of(recipe, flags, MIXED)
    device = prepare_device(flags, settings)
    if precision.compute != "float32":
        mix_in(precision.compute)  # before a model is made
    # MXNet itself applies a dynamic scale.
    dynamic = precision.loss_scale == DYNAMIC
    scale = 1.0 if dynamic else precision.loss_scale or 1.0
    counts = Counts(recipe)
    if flags.input == "synthetic":
        batch = synthetic_batch(recipe, flags, RANK)
        counts.always(batch)
        data = again_and_again(batch, device)
    else:
        data = on_device(counts.of(make_batches(flags, RANK, WORLD_SIZE, device)), device)
    network = make_model(flags, device)
    start_from(network, recipe, flags, device)
    watched = Watched(log, lambda: (one.data().asnumpy() for one in trained_by(network)))
    if flags.input != "synthetic":
        data = log.timed(data, Marks(weight.data() for weight in trained_by(network)).mark)
    groups = settings.gpu_groups if flags.device == "cuda" else 0
    asked = optimizer_of(recipe, flags)
    optimizer = make_optimizer(
        asked, device, learning_rate=recipe.learning_rate(log.global_batch), rescale_grad=1 / scale
    )
    clip = getattr(asked, "clip", None)
    trainer = Trainer(network.collect_params(), optimizer, clip=clip, groups=groups)
    backward = make_backward(trainer, scale, device, dynamic=dynamic)
    log.configured(
        parameters=sum(weight.data().size for weight in trained_by(network)),
        framework=f"mxnet {mx.__version__}",
        versions={**versions(), **settings.versions},
        devices=hvd.allgather_object(device_name(device)),
        precision=precision,
    )
    if dropout_of(recipe, flags):
        first = next(data)
        log.without_dropout(loss_without_dropout(network, first))
        data = itertools.chain([first], data)
    network.hybridize(static_alloc=True, static_shape=True)
    for iteration in range(1, flags.iterations + 1):
        batch = next(data)
        with autograd.record():
            loss = network(*batch)
            backward(loss)
        trainer.step(1)
        if log.prints(iteration):
            # The loss is ready before the gradients: fetching it would not wait for everything.
            mx.nd.waitall()
            together = of_all_together(counts.after(iteration), device)
            log.step(iteration, loss.asscalar().item(), **together)
    digests = hvd.allgather_object(watched.digest())
    log.finished(digests, hvd.allgather_object(peak_memory(device)), watched.changes())
    hvd.shutdown()


def prepare_device(flags, settings):
    """This process's device, ready for use and connected to the other ranks'."""
    if flags.device == "cpu":
        process.keep_to_own_cores(RANK, flags.threads)
        mx.base.check_call(mx.base._LIB.MXSetNumOMPThreads(flags.threads))
        device = mx.cpu()
    else:
        # MXNet and Horovod read these when they start, further down.
        for name, value in settings.gpu_environment.items():
            os.environ.setdefault(name, value)
        if mx.context.num_gpus() <= LOCAL_RANK:
            raise Refused(
                f"mxnet sees {mx.context.num_gpus()} GPUs, local rank {LOCAL_RANK} needs another; "
                "allowed: a build for GPUs, such as the image of envs/mxnet.image.yaml, on GPUs"
            )
        device = mx.gpu(LOCAL_RANK)
    mx.random.seed(flags.seed + RANK)  # for dropout
    check_horovod(hvd, flags, WORLD_SIZE)
    hvd.init()
    return device


def mix_in(compute):
    """Let MXNet compute what it can in float16 or bfloat16."""
    only_float32 = None
    if compute == "bfloat16":
        only_float32 = [*amp.lists.symbol_bf16.FP32_FUNCS, *LACKS_BFLOAT16]
    amp.init(compute, fp32_ops=only_float32)


def start_from(network, recipe, flags, device):
    """Give a model the recipe's weights, on its device."""
    network.initialize(mx.init.Zero(), ctx=device)
    arranged = getattr(network, "arranged", lambda name, start: start)
    for weight, name, start in with_start(trained_by(network), recipe, flags):
        weight.set_data(mx.nd.array(arranged(name, start)))
        weight.wd_mult = float(recipe.decays(name))


def loss_without_dropout(network, batch):
    """A batch's loss while nothing is dropped out.

    Its graph is compiled for this alone, and gives back what memory it took.
    """
    network.hybridize()
    return network(*batch).asscalar().item()


def trained_by(network):
    """The parameters that are trained, in the order in which a sample passes them."""
    return [one for one in network.collect_params().values() if one.grad_req != "null"]


def make_backward(trainer, scale, device, *, dynamic):
    """A function that computes the gradients of a loss, scaled by a fixed number or by MXNet."""
    if dynamic:
        amp.init_trainer(trainer)

        def backward(loss):
            with amp.scale_loss(loss, trainer) as scaled:
                scaled.backward()
    else:
        factor = mx.nd.full(1, scale, ctx=device)

        def backward(loss):
            loss.backward(factor)

    return backward


def of_all_together(counts, device):
    """The sums of all ranks' counts."""
    if WORLD_SIZE == 1 or not counts:
        return counts
    sums = mx.nd.array(list(counts.values()), device, "int64")
    return dict(zip(counts, hvd.allreduce(sums, average=False).asnumpy().tolist()))


def peak_memory(device):
    """Bytes: the GPU memory in use, or the most main memory that this process used.

    MXNet returns no GPU memory before it ends, so what is in use now is the peak.
    """
    if device.device_type == "gpu":
        free, total = mx.context.gpu_memory_info(device.device_id)
        return total - free
    return process.peak_memory()


def device_name(device):
    if device.device_type == "cpu":
        return "cpu"
    cuda = ctypes.CDLL("libcuda.so.1")
    number, name = ctypes.c_int(), ctypes.create_string_buffer(100)
    cuda.cuDeviceGet(ctypes.byref(number), device.device_id)
    cuda.cuDeviceGetName(name, len(name), number)
    return name.value.decode()


def versions():
    return {
        "python": process.python_version(),
        "mxnet": mx.__version__,
        "horovod": horovod.__version__,
    }
