"""Training with PaddlePaddle, after its environment has been prepared."""

import os
import platform
import resource

import paddle
import paddle.distributed as dist
import resnet50
from aborts import abort_late
from paddle import nn
from paddle.distributed import fleet
from paddlepaddle.data import input_batches
from paddlepaddle.model import ResNet50
from steplog import Refused

RANK = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
WORLD_SIZE = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))

LOSS_SCALES = {
    "none": {"enable": False},
    "static": {
        "init_loss_scaling": resnet50.STATIC_LOSS_SCALE,
        "use_dynamic_loss_scaling": False,
    },
    "dynamic": {},
}


def train(flags, log):
    """Train as the flags say."""
    paddle.disable_signal_handler()  # it stands in the way of others
    abort_late()
    dtype = make_precision(flags)
    gpu = prepare_device(flags)
    precision = {"enable": False} if dtype == "float32" else {"dtype": dtype}
    scaler = paddle.amp.GradScaler(**LOSS_SCALES[flags.loss_scale])
    data = input_batches(flags, RANK, WORLD_SIZE, gpu)
    # A GPU's units for 16 bits want channels last.
    network = ResNet50(flags.seed, "NCHW" if dtype == "float32" else "NHWC")
    optimizer = make_optimizer(network, log.global_batch)
    model = fleet.distributed_model(network) if WORLD_SIZE > 1 else network
    log.configured(
        parameters=sum(weight.size for weight in network.weights()),
        framework=f"paddlepaddle {paddle.__version__}",
        versions={**versions(), "precision": dtype},
        devices=of_all_ranks("cpu" if gpu is None else paddle.device.cuda.get_device_name()),
    )
    for iteration in range(1, flags.iterations + 1):
        images, labels = next(data)
        with paddle.amp.auto_cast(**precision):
            loss = nn.functional.cross_entropy(
                model(images), labels, label_smoothing=resnet50.LABEL_SMOOTHING
            )
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()
        if log.prints(iteration):
            # Fetching the loss waits for all that was queued before, so for the whole iteration.
            log.step(iteration, loss.item())
    log.finished(of_all_ranks(digest(network)), of_all_ranks(peak_memory(gpu)))
    if WORLD_SIZE > 1:
        dist.barrier()


def make_precision(flags):
    """What convolutions compute in.

    Mixed precision is bfloat16, or float16 where a loss scale is asked for.
    """
    mixed = flags.precision == "amp"
    if mixed and flags.device == "cpu":
        raise Refused("--precision amp changes nothing in Paddle on a CPU; allowed: fp32")
    if flags.loss_scale == "none":
        return "bfloat16" if mixed else "float32"
    if not mixed:
        raise Refused("--loss-scale is for float16, which needs --device cuda and amp")
    return "float16"


def prepare_device(flags):
    """Make this process's device ready, and connect it to the other ranks'.

    Returns:
        The number of its GPU, or None for the CPU.
    """
    if flags.device == "cpu":
        paddle.set_device("cpu")
        paddle.base.core.set_num_threads(flags.threads)
        gpu = None
    elif not paddle.is_compiled_with_cuda() or not paddle.device.cuda.device_count():
        raise Refused("paddlepaddle sees no GPU; run the image of envs/paddlepaddle.image.yaml")
    else:
        paddle.set_device("gpu")  # the one that the launcher chose
        paddle.set_flags({"FLAGS_cudnn_exhaustive_search": True})
        gpu = dist.ParallelEnv().device_id
    if WORLD_SIZE > 1:
        fleet.init(is_collective=True)
    return gpu


def make_optimizer(network, global_batch):
    """SGD that decays all weights and the classifier's bias, but not batch norm."""
    weights = network.weights()
    return paddle.optimizer.Momentum(
        learning_rate=resnet50.learning_rate(global_batch),
        momentum=resnet50.MOMENTUM,
        parameters=[
            {
                "params": [weight for weight in weights if weight.decays],
                "weight_decay": resnet50.WEIGHT_DECAY,
            },
            {"params": [weight for weight in weights if not weight.decays], "weight_decay": 0.0},
        ],
        use_multi_tensor=True,
    )


def of_all_ranks(value):
    """What each rank gave, in the order of ranks."""
    if WORLD_SIZE == 1:
        return [value]
    values = []
    dist.all_gather_object(values, value)
    return values


def digest(network):
    """A short digest of all weights."""
    return resnet50.digest(weight.numpy() for weight in network.weights())


def peak_memory(gpu):
    """Bytes: the most that Paddle took of a GPU, or that this process took of the memory."""
    if gpu is not None:
        return paddle.device.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def versions():
    found = {"python": platform.python_version(), "paddlepaddle": paddle.__version__}
    if paddle.is_compiled_with_cuda():
        found["cuda"] = paddle.version.cuda()
        found["cudnn"] = paddle.version.cudnn()
    return found
