"""Training any model with TensorFlow 1.15's static graph and Horovod: one process per device."""

import functools
import os
import re

import horovod
import horovod.tensorflow as hvd
import tensorflow
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig
from tensorflow.python.client import device_lib

from trainers.contract import process
from trainers.contract.precision import precision_of
from trainers.contract.rank import training
from trainers.contract.recipe import dropout_of
from trainers.contract.steplog import Refused
from trainers.contract.weights import Watched, synthetic_batch
from trainers.frameworks.horovod import check_horovod
from trainers.frameworks.tensorflow.counts import Counter
from trainers.frameworks.tensorflow.inputs import batches_read, timed
from trainers.frameworks.tensorflow.layers import Layers
from trainers.frameworks.tensorflow.optimizers import make_update
from trainers.frameworks.tensorflow.scaling import make_scale
from trainers.frameworks.tensorflow.shared import count, dense, start_weights

tf = tensorflow.compat.v1

RANK = int(os.environ.get("HOROVOD_RANK", "0"))
LOCAL_RANK = int(os.environ.get("HOROVOD_LOCAL_RANK", "0"))
WORLD_SIZE = int(os.environ.get("HOROVOD_SIZE", "1"))

MIXED = {"cuda": ("float16",)}
"""The data types in which TensorFlow 1.15 mixes precisions, by device."""

# What is set already stays.
# Source: NVIDIA DeepLearningExamples, TensorFlow/Classification/ConvNets/runtime/runner.py.
GPU_SETTINGS = {
    "TF_GPU_THREAD_MODE": "gpu_private",
    "TF_SYNC_ON_FINISH": "0",
    "TF_USE_CUDNN_BATCHNORM_SPATIAL_PERSISTENT": "1",
}


def run(recipe, model, dataset, dali=None):
    """Train as the flags say.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.
        model: makes, from the flags and Layers, a callable that takes a batch and returns its mean
            loss.
        dataset: reads data: returns, for flags, rank and world size, a tf.data.Dataset of batches.
        dali: returns, for flags, rank, world size and GPU, the tensors of a batch that DALI reads;
            left out: it cannot read such data.
    """
    with training(recipe, RANK, WORLD_SIZE, LOCAL_RANK) as (flags, log):
        train(recipe, flags, log, make_model=model, make_dataset=dataset, make_dali=dali)


def train(recipe, flags, log, *, make_model, make_dataset, make_dali):
    """Train as `run` says, and log it."""
    precision = precision_of(recipe, flags, MIXED)
    settings, device = prepare_device(flags)
    if precision.compute == "float16":
        settings.graph_options.rewrite_options.auto_mixed_precision = RewriterConfig.ON
    counter = Counter(recipe, flags.shape)
    batch, waited, start_input = make_input(recipe, flags, counter, make_dataset, make_dali)
    if flags.load_only is not None:
        load_only(log, settings, batch, start_input)
    batch, counts = counter.split(batch)
    sums = [tf.Variable(tf.zeros_like(one), trainable=False).assign_add(one) for one in counts]
    weights, starts = make_weights(recipe, flags)
    layers = Layers(weights)
    model = make_model(flags, layers)
    # Built first, while layers have no seed.
    without_dropout = model(*batch) if dropout_of(recipe, flags) else None
    layers.seed = make_seed(flags)
    loss = model(*batch)
    scale = make_scale(precision)
    update = make_update(recipe, flags, weights, recipe.learning_rate(log.global_batch))
    updated = scale.guard(update, make_gradients(loss, scale, weights))
    iterate = tf.group(updated, waited, *sums, *tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    with tf.control_dependencies([iterate]):
        loss = tf.identity(loss)  # fetching it waits for the whole iteration
    fetched = [loss, waited, *map(of_all_together, sums)]
    with tf.Session(config=settings) as session:
        start_variables(session, recipe, flags, weights, starts)
        watched = Watched(log, lambda: session.run(list(weights.values())))
        start_input(session)
        log.configured(
            parameters=count(weights),
            framework=f"tensorflow {tf.__version__}",
            versions=versions(),
            devices=hvd.allgather_object(device, session),
            precision=precision,
        )
        if without_dropout is not None:
            log.without_dropout(session.run(without_dropout).item())
        iterate, iterate_for_loss = map(session.make_callable, (iterate, fetched))
        for iteration in range(1, flags.iterations + 1):
            if log.prints(iteration):
                reached, seconds, *summed = iterate_for_loss()
                counted = counter.named(summed)
                log.step(iteration, reached.item(), waited=seconds.item(), **counted)
            else:
                iterate()
        digests = hvd.allgather_object(watched.digest(), session)
        peaks = hvd.allgather_object(peak_memory(flags, session), session)
        log.finished(digests, peaks, watched.changes())


def load_only(log, settings, batch, start_input):
    """Take batches, and train nothing."""
    with tf.Session(config=settings) as session:
        start_input(session)
        log.load(session.make_callable(tf.group(*batch)))


def prepare_device(flags):
    """This process's device, ready for use and connected to the other ranks'.

    Returns:
        The session's settings, and the device's name.
    """
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.enable_resource_variables()
    settings = tf.ConfigProto()
    if flags.device == "cpu":
        if flags.compile or flags.dali:
            raise Refused("--compile and --dali need --device cuda")
        process.keep_to_own_cores(RANK, flags.threads)
        settings.intra_op_parallelism_threads = flags.threads
        settings.inter_op_parallelism_threads = flags.threads
        device = "cpu"
    else:
        for name, value in GPU_SETTINGS.items():
            os.environ.setdefault(name, value)
        settings.gpu_options.visible_device_list = str(LOCAL_RANK)
        settings.gpu_options.allow_growth = flags.dali  # else nothing is left for DALI's buffers
        device = gpu_name(settings)
    if flags.compile:
        optimizer_options = settings.graph_options.optimizer_options
        optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
    check_horovod(hvd, flags, WORLD_SIZE)
    hvd.init()
    return settings, device


def gpu_name(settings):
    """The name of the GPU that a session with these settings gets."""
    for device in device_lib.list_local_devices(settings):
        if device.device_type == "GPU":
            return re.search("name: ([^,]*)", device.physical_device_desc).group(1)
    raise Refused(
        f"TensorFlow sees no GPU for local rank {LOCAL_RANK}; allowed: a build for GPUs, such as"
        " the image of envs/ngc-tensorflow1.image.yaml, on GPUs"
    )


def make_input(recipe, flags, counter, make_dataset, make_dali):
    """The tensors of the next batch, the seconds waited for batches so far, and what starts them.

    Behind the batch are its counts, if any.

    Raises:
        Refused: there is no such data.
    """
    if flags.input == "synthetic":
        arrays = counter.with_counts(synthetic_batch(recipe, flags, RANK))
        # Fed, because a graph cannot hold 2 GB.
        feed = {tf.placeholder(array.dtype, array.shape): array for array in arrays}
        batches = tf.data.Dataset.from_tensors(tuple(feed)).repeat()
        next_batch, start = _iterated(flags, batches, feed)
        return next_batch(), tf.constant(0.0, tf.float64), start
    if flags.dali:
        if make_dali is None:
            raise Refused("--dali reads images; allowed here: the usual reader")
        next_batch = functools.partial(make_dali, flags, RANK, WORLD_SIZE, LOCAL_RANK)
        start = _nothing_to_start
    else:
        dataset = make_dataset(flags, RANK, WORLD_SIZE)
        batches = batches_read(recipe, flags, counter, dataset)
        next_batch, start = _iterated(flags, batches, {})
    batch, seconds = timed(next_batch)
    with tf.device("/cpu:0"):
        waited = tf.Variable(0.0, trainable=False, dtype=tf.float64)
    return batch, waited.assign_add(seconds), start


def _iterated(flags, batches, feed):
    """What makes the next batch of a dataset, on the device, and what starts it in a session."""
    if flags.device == "cuda":
        batches = batches.apply(tf.data.experimental.prefetch_to_device("/gpu:0"))
    iterator = tf.data.make_initializable_iterator(batches)
    return iterator.get_next, lambda session: session.run(iterator.initializer, feed)


def _nothing_to_start(_session):
    """DALI starts by itself."""


def make_weights(recipe, flags):
    """Variables by name, and the placeholders they start from: a graph cannot hold 2 GB."""
    weights, starts = {}, {}
    for name, value in start_weights(recipe, flags):
        starts[name] = tf.placeholder(tf.float32, value.shape)
        weights[name] = tf.Variable(starts[name], name=name)
    return weights, starts


def start_variables(session, recipe, flags, weights, starts):
    """Start weights as the recipe says, and all other variables as they are defined."""
    # All in one go, for each new thing that is asked of a session takes it a while to prepare.
    values = {starts[name]: value for name, value in start_weights(recipe, flags)}
    session.run([weight.initializer for weight in weights.values()], values)
    own = {weight.name for weight in weights.values()}
    others = [variable for variable in tf.global_variables() if variable.name not in own]
    session.run(tf.variables_initializer(others))


def make_seed(flags):
    """Two int32 numbers that depend on this rank, and change with each iteration."""
    with tf.device("/cpu:0"):  # where random kernels want it, so that no GPU is waited for
        iteration = tf.Variable(0, trainable=False).assign_add(1)
        return tf.stack([tf.constant((flags.seed + RANK) % 2**31), iteration])


def make_gradients(loss, scale, weights):
    """The loss's gradients, in the order of the weights, which Horovod averages over the ranks."""
    gradients = dense(weights, tf.gradients(scale.value * loss, list(weights.values())))
    gradients = [gradient / scale.value for gradient in gradients]
    return gradients if WORLD_SIZE == 1 else list(map(hvd.allreduce, gradients))


def of_all_together(counts):
    """The sums of all ranks' counts."""
    counts = tf.identity(counts)
    return counts if WORLD_SIZE == 1 else hvd.allreduce(counts, op=hvd.Sum)


def peak_memory(flags, session):
    """Bytes: the most GPU memory that TensorFlow used, or main memory that this process used."""
    if flags.device == "cuda":
        with tf.device("/gpu:0"):
            return session.run(tensorflow.contrib.memory_stats.MaxBytesInUse()).item()
    return process.peak_memory()


def versions():
    return {
        "python": process.python_version(),
        "tensorflow": tf.__version__,
        "horovod": horovod.__version__,
    }
