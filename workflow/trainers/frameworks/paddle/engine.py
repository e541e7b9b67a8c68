"""Training any model with PaddlePaddle: one process per device, started by its own launcher."""

import itertools
import math

import paddle
import paddle.distributed as dist
from paddle import nn
from paddle.distributed import fleet

from trainers.contract import process
from trainers.contract.aborts import abort_late
from trainers.contract.counts import Counts
from trainers.contract.precision import DYNAMIC, precision_of
from trainers.contract.recipe import AdamW, decay_groups, dropout_of, optimizer_of
from trainers.contract.steplog import Refused
from trainers.contract.weights import Watched, synthetic_batch, with_start
from trainers.frameworks.paddle.before import RANK, WORLD_SIZE
from trainers.frameworks.paddle.inputs import again_and_again, on_device

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
            endless batches, of numpy's arrays or on the device.
    """
    paddle.disable_signal_handler()  # it gets in the way of others
    abort_late()
    precision = precision_of(recipe, flags, MIXED)
    gpu = prepare_device(flags)
    mixed = {"enable": False} if precision.compute == "float32" else {"dtype": precision.compute}
    dynamic = precision.loss_scale == DYNAMIC
    # With a fixed scale Paddle's own scaler, too, would look for overflows: the CPU would wait for
    # each step.
    scaler = paddle.amp.GradScaler(enable=dynamic)
    scale = 1.0 if dynamic else precision.loss_scale or 1.0
    counts = Counts(recipe)
    if flags.input == "synthetic":
        batch = synthetic_batch(recipe, flags, RANK)
        counts.always(batch)
        data = again_and_again(batch)
    else:
        data = on_device(counts.of(make_batches(flags, RANK, WORLD_SIZE, gpu)))
        data = log.timed(data, mark_of(gpu))
    # A GPU's 16-bit units want channels last.
    network = make_model(flags, "NCHW" if precision.compute == "float32" else "NHWC")
    start_from(network, recipe, flags)
    watched = Watched(log, lambda: (weight.numpy() for weight in trained(network)))
    optimizer = make_optimizer(network, recipe, flags, log.global_batch, scale)
    log.configured(
        parameters=sum(weight.size for weight in trained(network)),
        framework=f"paddlepaddle {paddle.__version__}",
        versions=versions(),
        devices=of_all_ranks("cpu" if gpu is None else paddle.device.cuda.get_device_name()),
        precision=precision,
    )
    if dropout_of(recipe, flags):
        first = next(data)
        with paddle.amp.auto_cast(**mixed):
            log.without_dropout(loss_without_dropout(network, first))
        data = itertools.chain([first], data)
    if gpu is not None:
        compile_once(network)
    model = fleet.distributed_model(network) if WORLD_SIZE > 1 else network
    for iteration in range(1, flags.iterations + 1):
        batch = next(data)
        with paddle.amp.auto_cast(**mixed):
            loss = model(*batch)
        scaler.scale(loss if scale == 1.0 else loss * scale).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()
        if log.prints(iteration):
            # Fetching the loss waits for all that was queued before, so for the whole iteration.
            loss = loss.item()
            log.step(iteration, loss, **of_all_together(counts.after(iteration)))
    digests, peaks = of_all_ranks(watched.digest()), of_all_ranks(peak_memory(gpu))
    log.finished(digests, peaks, watched.changes())
    if WORLD_SIZE > 1:
        dist.barrier()


def make_optimizer(network, recipe, flags, global_batch, scale):
    """The recipe's optimizer, on the gradients of a loss that was multiplied by `scale`.

    A power of two, it takes no kernel more, and gives the same weights to the bit: SGD's decay and
    momentum are multiplied by it, too, and its learning rate is divided by it; Adam's steps are the
    same at any scale if what is added to their denominator grows with it, and the norm to clip to.
    """
    asked = optimizer_of(recipe, flags)
    rate = recipe.learning_rate(global_batch)
    groups = decay_groups(recipe, flags, trained(network))
    if isinstance(asked, AdamW):
        # Paddle clips each group by a norm of its own: all weights are in one.
        decayed = {one.name for group in groups if group["weight_decay"] for one in group["params"]}
        clip = None if asked.clip is None else nn.ClipGradByGlobalNorm(asked.clip * scale)
        return paddle.optimizer.AdamW(
            learning_rate=rate,
            beta1=asked.beta1,
            beta2=asked.beta2,
            epsilon=asked.epsilon * scale,
            parameters=trained(network),
            weight_decay=asked.weight_decay,
            apply_decay_param_fun=decayed.__contains__,
            grad_clip=clip,
        )
    for group in groups:
        group["weight_decay"] *= scale
    return paddle.optimizer.Momentum(
        learning_rate=rate / scale,
        momentum=asked.momentum,
        parameters=groups,
        use_multi_tensor=True,
    )


def loss_without_dropout(network, batch):
    """A batch's loss while nothing is dropped out."""
    network.eval()
    with paddle.no_grad():
        loss = network(*batch).item()
    network.train()
    return loss


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
        raise Refused(
            "paddlepaddle sees no GPU; allowed: a build for GPUs, such as the image of "
            "envs/paddlepaddle.image.yaml, on GPUs"
        )
    else:
        paddle.set_device("gpu")  # the one that the launcher chose
        paddle.set_flags({"FLAGS_cudnn_exhaustive_search": True})
        gpu = dist.ParallelEnv().device_id
    if WORLD_SIZE > 1:
        fleet.init(is_collective=True)
    paddle.seed(flags.seed + RANK)  # for dropout
    return gpu


def mark_of(gpu):
    """What marks the end of the device's work, as StepLog.timed needs it."""
    if gpu is None:
        return None
    end = paddle.device.cuda.Event()

    def idle_since():
        # A GPU that has finished may have been idle for as long as anybody waited.
        return -math.inf if end.query() else math.inf

    def mark():
        end.record()
        return idle_since

    return mark


def compile_once(network):
    """Have a model run as one static graph, as PaddleClas trains, with the same parameters.

    On a GPU Python would launch each kernel; on a CPU the graph was no faster.
    """
    paddle.jit.to_static(network, full_graph=True)


def start_from(network, recipe, flags):
    """Give a model the recipe's weights."""
    # Paddle's linear layers are [features, classes].
    turned = {id(one.weight) for one in network.sublayers() if isinstance(one, nn.Linear)}
    for weight, _, value in with_start(trained(network), recipe, flags):
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


def of_all_together(counts):
    """The sums of all ranks' counts."""
    if WORLD_SIZE == 1 or not counts:
        return counts
    sums = paddle.to_tensor(list(counts.values()))
    dist.all_reduce(sums)
    return dict(zip(counts, sums.tolist()))


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
