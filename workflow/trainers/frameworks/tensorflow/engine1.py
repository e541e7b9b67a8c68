"""Training any model with TensorFlow 1.15's static graph and Horovod: one process per device."""

import os
import re

import horovod
import horovod.tensorflow as hvd
import tensorflow
from tensorflow.python.client import device_lib

from trainers.contract import process
from trainers.contract.precision import precision_of
from trainers.contract.rank import training
from trainers.contract.recipe import optimizer_of
from trainers.contract.steplog import Refused
from trainers.contract.weights import digest, synthetic_batch
from trainers.frameworks.horovod import check_horovod
from trainers.frameworks.tensorflow.inputs import on_threads
from trainers.frameworks.tensorflow.layers import Layers
from trainers.frameworks.tensorflow.shared import count, decayed, dense, start_weights

tf = tensorflow.compat.v1

RANK = int(os.environ.get("HOROVOD_RANK", "0"))
LOCAL_RANK = int(os.environ.get("HOROVOD_LOCAL_RANK", "0"))
WORLD_SIZE = int(os.environ.get("HOROVOD_SIZE", "1"))

MIXED = {"cuda": ("float16",)}
"""The data types in which TensorFlow 1.15 mixes precisions, by device."""

# What is set already stays.
# Source: NVIDIA DeepLearningExamples, TensorFlow/Classification/ConvNets/runtime/runner.py.
GPU_SETTINGS = {
    "NVIDIA_TF32_OVERRIDE": "0",  # fp32 means fp32, not TF32
    "TF_GPU_THREAD_MODE": "gpu_private",
    "TF_SYNC_ON_FINISH": "0",
    "TF_USE_CUDNN_BATCHNORM_SPATIAL_PERSISTENT": "1",
}


def run(recipe, model, dataset, dali):
    """Train as the flags say.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.
        model: makes, from the flags and Layers, a callable that takes a batch and returns its mean
            loss.
        dataset: reads data: returns, for flags, rank and world size, a tf.data.Dataset of batches.
        dali: returns, for flags, rank, world size and GPU, the tensors of a batch that DALI reads.
    """
    with training(recipe, RANK, WORLD_SIZE) as (flags, log):
        train(recipe, flags, log, make_model=model, make_dataset=dataset, make_dali=dali)


def train(recipe, flags, log, *, make_model, make_dataset, make_dali):
    """Train as `run` says, and log it."""
    precision = precision_of(recipe, flags, MIXED)
    settings, device = prepare_device(flags)
    batch, start_input = make_input(recipe, flags, make_dataset, make_dali)
    weights, starts = make_weights(recipe, flags)
    layers = Layers(weights)
    layers.seed = make_seed(flags)
    loss = make_model(flags, layers)(*batch)
    optimizer = make_optimizer(recipe, flags, log.global_batch, precision.loss_scale)
    update = make_update(recipe, flags, optimizer, loss, weights)
    iterate = tf.group(update, *tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    with tf.control_dependencies([iterate]):
        loss = tf.identity(loss)  # fetching it waits for the whole iteration
    with tf.Session(config=settings) as session:
        start_variables(session, recipe, flags, weights, starts)
        start_input(session)
        log.configured(
            parameters=count(weights),
            framework=f"tensorflow {tf.__version__}",
            versions=versions(),
            devices=hvd.allgather_object(device, session),
            precision=precision,
        )
        iterate, iterate_for_loss = map(session.make_callable, (iterate, loss))
        for iteration in range(1, flags.iterations + 1):
            if log.prints(iteration):
                log.step(iteration, iterate_for_loss().item())
            else:
                iterate()
        digests = hvd.allgather_object(digest(map(session.run, weights.values())), session)
        log.finished(digests, hvd.allgather_object(peak_memory(flags, session), session))


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


def make_input(recipe, flags, make_dataset, make_dali):
    """The tensors of the next batch, and what a session must run to start them.

    Raises:
        Refused: there is no such data.
    """
    if flags.dali and flags.input != "synthetic":
        return make_dali(flags, RANK, WORLD_SIZE, LOCAL_RANK), lambda session: None
    feed = {}
    if flags.input == "synthetic":
        arrays = synthetic_batch(recipe, flags, RANK)
        # Fed, because a graph cannot hold 2 GB.
        feed = {tf.placeholder(array.dtype, array.shape): array for array in arrays}
        batches = tf.data.Dataset.from_tensors(tuple(feed)).repeat()
    else:
        batches = on_threads(make_dataset(flags, RANK, WORLD_SIZE), flags.loader_threads)
    if flags.device == "cuda":
        batches = batches.apply(tf.data.experimental.prefetch_to_device("/gpu:0"))
    iterator = tf.data.make_initializable_iterator(batches)
    return iterator.get_next(), lambda session: session.run(iterator.initializer, feed)


def make_weights(recipe, flags):
    """Variables by name, and the placeholders they start from: a graph cannot hold 2 GB."""
    weights, starts = {}, {}
    for name, value in start_weights(recipe, flags):
        starts[name] = tf.placeholder(tf.float32, value.shape)
        weights[name] = tf.Variable(starts[name], name=name)
    return weights, starts


def start_variables(session, recipe, flags, weights, starts):
    """Start weights as the recipe says, and all other variables as they are defined."""
    for name, value in start_weights(recipe, flags):
        session.run(weights[name].initializer, {starts[name]: value})
    own = {weight.name for weight in weights.values()}
    others = [variable for variable in tf.global_variables() if variable.name not in own]
    session.run(tf.variables_initializer(others))


def make_seed(flags):
    """Two int32 numbers that depend on this rank, and change with each iteration."""
    with tf.device("/cpu:0"):  # where random kernels want it, so that no GPU is waited for
        iteration = tf.Variable(0, trainable=False).assign_add(1)
        return tf.stack([tf.constant((flags.seed + RANK) % 2**31), iteration])


def make_optimizer(recipe, flags, global_batch, loss_scale):
    """SGD on gradients that Horovod averages over the ranks; in float16 if the loss is scaled."""
    momentum, _ = optimizer_of(recipe, flags)
    optimizer = tf.train.MomentumOptimizer(recipe.learning_rate(global_batch), momentum)
    if loss_scale is not None:
        optimizer = tf.train.experimental.enable_mixed_precision_graph_rewrite(
            optimizer, loss_scale
        )
    return hvd.DistributedOptimizer(optimizer, sparse_as_dense=True)


def make_update(recipe, flags, optimizer, loss, weights):
    """The operation that updates the weights."""
    _, decay = optimizer_of(recipe, flags)
    variables = list(weights.values())
    averaged = [gradient for gradient, _ in optimizer.compute_gradients(loss, variables)]
    gradients = decayed(recipe, decay, weights, dense(weights, averaged))
    return optimizer.apply_gradients(zip(gradients, variables))  # noqa: B905 - Python 3.7


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
