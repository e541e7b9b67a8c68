"""Train with MXNet's Gluon and Horovod: one process per device, started by horovodnode."""

import ctypes
import itertools
import os
import platform
import resource

import horovod
import horovod.mxnet as hvd
import mxnet as mx
import resnet50
import steplog
from gluon_model import ResNet50Loss
from mxnet import autograd
from mxnet.contrib import amp

RANK = int(os.environ.get("HOROVOD_RANK", "0"))
LOCAL_RANK = int(os.environ.get("HOROVOD_LOCAL_RANK", "0"))
WORLD_SIZE = int(os.environ.get("HOROVOD_SIZE", "1"))

# What the loss is multiplied by; a dynamic scale is MXNet's own and comes on top.
FIXED_SCALES = {"none": 1.0, "static": resnet50.STATIC_LOSS_SCALE, "dynamic": 1.0}


def run(input_batches, layout, more_versions=None, gpu_settings=None, gpu_groups=0):
    """Train as the flags say.

    Args:
        input_batches: gives, for flags, rank, world size and device, endless batches of uint8
            images and float32 labels [N], on the device.
        layout: how the images lie, "NHWC" or "NCHW".
        more_versions: of what else is used, name -> version.
        gpu_settings: environment variables that GPUs want, name -> value; what is set stays.
        gpu_groups: in how many groups GPUs' gradients are averaged; 0 leaves that to Horovod.
    """
    flags = steplog.parse_flags()
    log = steplog.StepLog(flags, RANK, WORLD_SIZE)
    with log.to_the_end():
        device = prepare_device(flags, gpu_settings or {})
        dtype, loss_scale = make_precision(flags)
        data = input_batches(flags, RANK, WORLD_SIZE, device)
        network = make_network(flags.seed, layout, device)
        groups = gpu_groups if flags.device == "cuda" else 0
        trainer = make_trainer(network, log.global_batch, FIXED_SCALES[loss_scale], groups)
        backward = make_backward(trainer, loss_scale, device)
        log.configured(
            parameters=sum(weight.data().size for weight in network.trainable()),
            framework=f"mxnet {mx.__version__}",
            versions={
                **versions(),
                **(more_versions or {}),
                "precision": f"{dtype}, loss scale {loss_scale}",
            },
            devices=hvd.allgather_object(device_name(device)),
        )
        for iteration in range(1, flags.iterations + 1):
            images, labels = next(data)
            with autograd.record():
                loss = network(images, labels)
                backward(loss)
            trainer.step(1)
            if log.prints(iteration):
                # The loss is there before the gradients are: to fetch it would not wait for all.
                mx.nd.waitall()
                log.step(iteration, loss.asscalar().item())
        digests = hvd.allgather_object(digest(network))
        log.finished(digests, hvd.allgather_object(peak_memory(device)))
        hvd.shutdown()


def prepare_device(flags, gpu_settings):
    """This process's device, ready, and connected to the other ranks'."""
    if flags.device == "cpu":
        steplog.keep_to_own_cores(RANK, flags.threads)
        mx.base.check_call(mx.base._LIB.MXSetNumOMPThreads(flags.threads))
        device = mx.cpu()
    else:
        # CUDA, MXNet and Horovod read these when they start, which is below.
        os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")  # fp32 is fp32
        for name, value in gpu_settings.items():
            os.environ.setdefault(name, value)
        if mx.context.num_gpus() <= LOCAL_RANK:
            raise steplog.Refused(
                f"mxnet sees {mx.context.num_gpus()} GPUs, local rank {LOCAL_RANK} needs another; "
                "allowed: a build for GPUs, such as the image of envs/mxnet.image.yaml, on GPUs"
            )
        device = mx.gpu(LOCAL_RANK)
    hvd.init()
    return device


def make_precision(flags):
    """Make MXNet's operators mix precisions where that is asked for, before a model is made.

    A GPU mixes in float16, which does not train without a loss scale: left out, it is the static
    one. A CPU mixes in bfloat16, which needs none.

    Returns:
        The lowest data type and the loss scale: "none", "static" or "dynamic".
    """
    if flags.loss_scale != "none" and (flags.device, flags.precision) != ("cuda", "amp"):
        raise steplog.Refused("--loss-scale is for float16, which needs --device cuda and amp")
    if flags.precision == "fp32":
        return "float32", "none"
    if flags.device == "cpu":
        amp.init("bfloat16")
        return "bfloat16", "none"
    amp.init("float16")
    return "float16", "static" if flags.loss_scale == "none" else flags.loss_scale


def make_network(seed, layout, device):
    """The model and its loss, compiled at the first call, with the agreed weights."""
    network = ResNet50Loss(layout, device)
    network.initialize(mx.init.Zero(), ctx=device)
    network.start_from(resnet50.initial_weights(seed))
    network.hybridize(static_alloc=True, static_shape=True)
    return network


def make_trainer(network, global_batch, loss_scale, groups):
    """SGD on gradients that Horovod averages over the ranks."""
    settings = {
        "learning_rate": resnet50.learning_rate(global_batch),
        "momentum": resnet50.MOMENTUM,
        "wd": resnet50.WEIGHT_DECAY,
        "rescale_grad": 1 / loss_scale,
    }
    return hvd.DistributedTrainer(network.collect_params(), "sgd", settings, num_groups=groups)


def make_backward(trainer, loss_scale, device):
    """A function that computes the gradients of a loss, scaled."""
    if loss_scale == "dynamic":
        amp.init_trainer(trainer)

        def backward(loss):
            with amp.scale_loss(loss, trainer) as scaled:
                scaled.backward()
    else:
        scale = mx.nd.full(1, FIXED_SCALES[loss_scale], ctx=device)

        def backward(loss):
            loss.backward(scale)

    return backward


def synthetic_batches(flags, rank, device, layout):
    """Endlessly the same batch of resnet50.synthetic_batch, on the device."""
    images, labels = resnet50.synthetic_batch(flags, rank)
    images = images.transpose(["NHWC".index(axis) for axis in layout])
    batch = mx.nd.array(images, device, "uint8"), mx.nd.array(labels, device, "float32")
    return itertools.repeat(batch)


def digest(network):
    """A short digest of all weights."""
    return resnet50.digest(weight.data().asnumpy() for weight in network.trainable())


def peak_memory(device):
    """Bytes: what is in use of a GPU, or the most that this process took of the memory.

    MXNet gives no memory of a GPU back before it ends, so what is in use is the most that was.
    """
    if device.device_type == "gpu":
        free, total = mx.context.gpu_memory_info(device.device_id)
        return total - free
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


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
        "python": platform.python_version(),
        "mxnet": mx.__version__,
        "horovod": horovod.__version__,
    }
