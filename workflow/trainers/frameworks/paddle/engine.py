"""Training any model with PaddlePaddle: one process per device, started by its own launcher."""

import paddle
import paddle.distributed as dist
from paddle import nn
from paddle.distributed import fleet

from trainers.contract import process
from trainers.contract.aborts import abort_late
from trainers.contract.precision import DYNAMIC, precision_of
from trainers.contract.recipe import decay_groups, optimizer_of
from trainers.contract.steplog import Refused
from trainers.contract.weights import digest, initial_weights
from trainers.frameworks.paddle.before import RANK, WORLD_SIZE
from trainers.frameworks.paddle.inputs import synthetic_batches

MIXED = {"cuda": ("float16", "bfloat16")}
"""The data types in which Paddle mixes precisions, by device: on a CPU its AMP changes nothing."""


def train(recipe, flags, log, *, make_model, make_batches):
    """Train as the flags say.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.
        flags: what parse_flags returned.
        log: the run's StepLog.
        make_model: makes, from the flags and a layout, "NCHW" or "NHWC", a layer that takes a batch
            and returns its mean loss; its trained parameters have the order and the sizes of the
            recipe's weight_shapes, except that nn.Linear's are transposed.
        make_batches: reads data: returns, for flags, rank, world size and the GPU's number or None,
            endless batches on the device.
    """
    paddle.disable_signal_handler()  # it gets in the way of others
    abort_late()
    precision = precision_of(recipe, flags, MIXED)
    gpu = prepare_device(flags)
    mixed = {"enable": False} if precision.compute == "float32" else {"dtype": precision.compute}
    scaler = make_scaler(precision)
    if flags.input == "synthetic":
        data = synthetic_batches(recipe, flags, RANK)
    else:
        data = make_batches(flags, RANK, WORLD_SIZE, gpu)
    # A GPU's 16-bit units want channels last.
    network = make_model(flags, "NCHW" if precision.compute == "float32" else "NHWC")
    start_from(network, recipe, flags)
    optimizer = paddle.optimizer.Momentum(
        learning_rate=recipe.learning_rate(log.global_batch),
        momentum=optimizer_of(recipe, flags).momentum,
        parameters=decay_groups(recipe, flags, trained(network)),
        use_multi_tensor=True,
    )
    model = fleet.distributed_model(network) if WORLD_SIZE > 1 else network
    log.configured(
        parameters=sum(weight.size for weight in trained(network)),
        framework=f"paddlepaddle {paddle.__version__}",
        versions=versions(),
        devices=of_all_ranks("cpu" if gpu is None else paddle.device.cuda.get_device_name()),
        precision=precision,
    )
    for iteration in range(1, flags.iterations + 1):
        batch = next(data)
        with paddle.amp.auto_cast(**mixed):
            loss = model(*batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()
        if log.prints(iteration):
            # Fetching the loss waits for all that was queued before, so for the whole iteration.
            log.step(iteration, loss.item())
    weights = (weight.numpy() for weight in trained(network))
    log.finished(of_all_ranks(digest(weights)), of_all_ranks(peak_memory(gpu)))
    if WORLD_SIZE > 1:
        dist.barrier()


def make_scaler(precision):
    """The scaler of the loss, which does nothing where none is needed."""
    if precision.loss_scale is None:
        return paddle.amp.GradScaler(enable=False)
    if precision.loss_scale == DYNAMIC:
        return paddle.amp.GradScaler()
    return paddle.amp.GradScaler(
        init_loss_scaling=precision.loss_scale, use_dynamic_loss_scaling=False
    )


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
    paddle.seed(flags.seed + RANK)  # for dropout
    return gpu


def start_from(network, recipe, flags):
    """Give a model the recipe's weights."""
    # Paddle's linear layers are [features, classes].
    turned = {id(one.weight) for one in network.sublayers() if isinstance(one, nn.Linear)}
    start = initial_weights(recipe, flags)
    for weight, (_, value) in zip(trained(network), start, strict=True):
        weight.set_value(value.T if id(weight) in turned else value)


def trained(network):
    """All parameters that are trained; Paddle's own list holds running averages, too."""
    return [weight for weight in network.parameters() if not weight.stop_gradient]


def of_all_ranks(value):
    """The value of each rank, in the order of ranks."""
    if WORLD_SIZE == 1:
        return [value]
    values = []
    dist.all_gather_object(values, value)
    return values


def peak_memory(gpu):
    """Bytes: the most GPU memory that Paddle used, or main memory that this process used."""
    if gpu is not None:
        return paddle.device.cuda.max_memory_allocated()
    return process.peak_memory()


def versions():
    found = {"python": process.python_version(), "paddlepaddle": paddle.__version__}
    if paddle.is_compiled_with_cuda():
        found["cuda"] = paddle.version.cuda()
        found["cudnn"] = paddle.version.cudnn()
    return found
