"""Training any model with TensorFlow 2: one process per device, on one node as on many.

trainers.launchers.tensorflow starts them; TF_CONFIG names them all where there are several.
"""

import json
import os

import numpy as np
import tensorflow as tf

from trainers.contract import process
from trainers.contract.precision import precision_of
from trainers.contract.rank import training
from trainers.contract.recipe import dropout_of
from trainers.contract.steplog import Refused
from trainers.contract.weights import Watched, synthetic_batch
from trainers.frameworks.tensorflow.counts import Counter
from trainers.frameworks.tensorflow.inputs import batches_read, timed
from trainers.frameworks.tensorflow.layers import Layers
from trainers.frameworks.tensorflow.optimizers import make_update
from trainers.frameworks.tensorflow.scaling import make_scale
from trainers.frameworks.tensorflow.shared import count, dense, start_weights

CLUSTER = json.loads(os.environ.get("TF_CONFIG", "null"))
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", "0"))
WORLD_SIZE = len(CLUSTER["cluster"]["worker"]) if CLUSTER else 1
RANK = CLUSTER["task"]["index"] if CLUSTER else 0

MIXED = {"cpu": ("bfloat16",), "cuda": ("float16", "bfloat16")}
"""The data types in which models mix precisions, by device."""
MESSAGE_BYTES = 256  # of what ranks tell each other


def run(recipe, model, dataset):
    """Train as the flags say.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.
        model: makes, from the flags and Layers, a callable that takes a batch and returns its mean
            loss.
        dataset: reads data: returns, for flags, rank and world size, a tf.data.Dataset of batches.
    """
    with training(recipe, RANK, WORLD_SIZE, LOCAL_RANK) as (flags, log):
        train(recipe, flags, log, make_model=model, make_dataset=dataset)


def train(recipe, flags, log, *, make_model, make_dataset):
    """Train as `run` says, and log it."""
    precision = precision_of(recipe, flags, MIXED)
    device = prepare_device(flags)
    strategy = make_strategy(device)
    counter = Counter(recipe, flags.shape)
    next_batch = make_input(recipe, flags, strategy, counter, make_dataset)
    if flags.load_only is not None:
        log.load(tf.function(next_batch, autograph=False))
    with strategy.scope():
        weights = {
            name: tf.Variable(value, name=name) for name, value in start_weights(recipe, flags)
        }
        watched = Watched(log, lambda: (weight.numpy() for weight in weights.values()))
        layers = Layers(weights, tf.as_dtype(precision.compute))
        model = make_model(flags, layers)
        update = make_update(recipe, flags, weights, recipe.learning_rate(log.global_batch))
        step = make_step(flags, layers, model, make_scale(precision), update)
    with tf.device("CPU:0"):  # where random kernels want it, so that no GPU is waited for
        iterations = tf.Variable(0, trainable=False)
        waited = tf.Variable(0.0, trainable=False, dtype=tf.float64)  # seconds, for batches
    with tf.device(device):  # where batches are
        sums = [tf.Variable(0, trainable=False, dtype=tf.int64) for _ in counter.units]

    def add_up(*counts):
        for counted, one in zip(sums, counts):
            counted.assign_add(one)

    @tf.function(autograph=False)
    def iterate():
        if flags.input == "synthetic":
            batch = next_batch()
        else:
            batch, seconds = timed(next_batch)
            waited.assign_add(seconds)
        batch, counts = counter.split(batch)
        strategy.run(add_up, args=counts)
        return strategy.run(step, args=(iterations.assign_add(1), *batch))

    @tf.function(autograph=False)
    def sum_of_all_ranks():
        return strategy.run(lambda: sum_over_ranks(map(tf.identity, sums)))

    @tf.function(autograph=False)
    def iterate_without_dropout():
        layers.seed = None
        batch, _ = counter.split(next_batch())
        return strategy.run(model, args=batch)

    log.configured(
        parameters=count(weights),
        framework=f"tensorflow {tf.__version__}",
        versions=versions(),
        devices=of_all_ranks(strategy, device_name(device)),
        precision=precision,
    )
    if dropout_of(recipe, flags):
        log.without_dropout(float(iterate_without_dropout()))
    for iteration in range(1, flags.iterations + 1):
        loss = iterate()
        if log.prints(iteration):
            # Fetching the loss waits for all that the device was given before, the update included.
            loss = float(loss)
            counted = counter.named(sum_of_all_ranks()) if sums else {}
            log.step(iteration, loss, waited=float(waited), **counted)
    digests = of_all_ranks(strategy, watched.digest())
    log.finished(digests, of_all_ranks(strategy, peak_memory(device)), watched.changes())


def prepare_device(flags):
    """The name of this process's device, ready for use."""
    if flags.device == "cpu":
        process.keep_to_own_cores(RANK, flags.threads)
        tf.config.threading.set_intra_op_parallelism_threads(flags.threads)
        tf.config.threading.set_inter_op_parallelism_threads(flags.threads)
        return "CPU:0"
    gpus = tf.config.list_physical_devices("GPU")
    if len(gpus) <= LOCAL_RANK:
        raise Refused(
            f"TensorFlow sees {len(gpus)} GPUs, local rank {LOCAL_RANK} needs another; allowed: a"
            " build for GPUs, such as the image of envs/tensorflow2.image.yaml, on GPUs"
        )
    # TensorFlow keeps all but that of a GPU's memory to itself; its own number leaves too little to
    # NCCL and cuDNN. Source: tensorflow/tensorflow#44810.
    os.environ.setdefault("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "4096")
    tf.config.set_visible_devices(gpus[LOCAL_RANK], "GPU")
    tf.config.experimental.enable_tensor_float_32_execution(False)  # by XLA neither
    return "GPU:0"


def make_strategy(device):
    """What connects the processes; a single one needs no connection."""
    if not CLUSTER:
        return tf.distribute.MirroredStrategy([device])
    # It finds the device itself. Left to choose, it averages GPUs' gradients through the CPUs.
    made_by = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=made_by.NCCL if device.startswith("GPU") else made_by.AUTO
    )
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def make_input(recipe, flags, strategy, counter, make_dataset):
    """A source of this rank's next batch, on its device; behind it are its counts, if any."""
    if flags.input == "synthetic":
        batch = counter.with_counts(synthetic_batch(recipe, flags, RANK))
        with tf.device(strategy.extended.worker_devices[0]):
            fixed = tuple(map(tf.constant, batch))
        return lambda: fixed

    def dataset_of(_):
        dataset = make_dataset(flags, RANK, WORLD_SIZE)
        return batches_read(recipe, flags, counter, dataset)

    return iter(strategy.distribute_datasets_from_function(dataset_of)).get_next


def make_step(flags, layers, model, scale, update):
    """This rank's iteration: takes its number and a batch, updates weights, returns the loss."""
    weights = list(layers.weights.values())

    def differentiate(seed, *batch):
        layers.seed = seed
        with tf.GradientTape() as tape:
            loss = model(*batch)
            scaled = scale.value * loss
        gradients = dense(layers.weights, tape.gradient(scaled, weights))
        return loss, [gradient / scale.value for gradient in gradients]

    if flags.compile:
        differentiate = tf.function(differentiate, jit_compile=True, autograph=False)

    def step(iteration, *batch):
        seed = tf.stack([tf.constant((flags.seed + RANK) % 2**31), iteration])
        loss, gradients = differentiate(seed, *batch)
        replica = tf.distribute.get_replica_context()
        scale.guard(update, replica.all_reduce("mean", gradients))
        return loss

    return step


def of_all_ranks(strategy, value):
    """The value of each rank, in the order of ranks."""
    if not CLUSTER:
        return [value]
    message = np.frombuffer(json.dumps(value).encode().ljust(MESSAGE_BYTES), np.uint8)
    messages = strategy.gather(tf.constant(message[np.newaxis], tf.int32), axis=0)
    return [json.loads(bytes(one.tolist())) for one in messages.numpy()]


def sum_over_ranks(counts):
    """The sums of each rank's counts."""
    return tf.distribute.get_replica_context().all_reduce("sum", list(counts))


def peak_memory(device):
    """Bytes: the most GPU memory in use, or main memory that this process used."""
    if device.startswith("GPU"):
        return tf.config.experimental.get_memory_info(device)["peak"]
    return process.peak_memory()


def device_name(device):
    """The GPU's name, or "cpu"."""
    if device.startswith("CPU"):
        return "cpu"
    (gpu,) = tf.config.get_visible_devices("GPU")
    return tf.config.experimental.get_device_details(gpu)["device_name"]


def versions():
    build = tf.sysconfig.get_build_info()
    found = {"python": process.python_version(), "tensorflow": tf.__version__}
    for name, key in (("cuda", "cuda_version"), ("cudnn", "cudnn_version")):
        if key in build:
            found[name] = build[key]
    return found
