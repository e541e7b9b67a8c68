"""Training any model with TensorFlow 2, as trainers.launchers.tensorflow starts it.

On one node a single process has all devices, each a rank. On several nodes every process has one
device, and TF_CONFIG names all processes.
"""

import json
import os

import numpy as np
import tensorflow as tf

from trainers.contract import process
from trainers.contract.flags import parse_flags
from trainers.contract.precision import DYNAMIC, precision_of
from trainers.contract.recipe import optimizer_of
from trainers.contract.steplog import Refused, StepLog
from trainers.contract.weights import digest, synthetic_batch
from trainers.frameworks.tensorflow.inputs import on_threads
from trainers.frameworks.tensorflow.layers import Layers, own_variable
from trainers.frameworks.tensorflow.shared import count, decayed, dense, start_weights

CLUSTER = json.loads(os.environ.get("TF_CONFIG", "null"))
LOCAL_DEVICES = int(os.environ.get("LOCAL_DEVICES", "1"))
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", "0"))  # of this process's first device
WORLD_SIZE = len(CLUSTER["cluster"]["worker"]) if CLUSTER else LOCAL_DEVICES
FIRST_RANK = CLUSTER["task"]["index"] if CLUSTER else 0
RANKS = range(FIRST_RANK, FIRST_RANK + LOCAL_DEVICES)  # those of this process

MIXED = {"cpu": ("bfloat16",), "cuda": ("float16", "bfloat16")}
"""The data types in which models mix precisions, by device."""
MESSAGE_BYTES = 256  # of what ranks of different nodes tell each other


def run(recipe, model, dataset):
    """Train as the flags say.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.
        model: makes, from the flags and Layers, a callable that takes a batch and returns its mean
            loss.
        dataset: reads data: returns, for flags, rank and world size, a tf.data.Dataset of batches.
    """
    flags = parse_flags(recipe)
    logs = [StepLog(recipe, flags, rank, WORLD_SIZE) for rank in RANKS]
    with logs[0].to_the_end():
        train(recipe, flags, logs, make_model=model, make_dataset=dataset)


def train(recipe, flags, logs, *, make_model, make_dataset):
    """Train as `run` says, and log it."""
    precision = precision_of(recipe, flags, MIXED)
    devices = prepare_devices(flags)
    strategy = make_strategy(devices)
    next_batch = make_input(recipe, flags, strategy, make_dataset)
    with strategy.scope():
        weights = {
            name: tf.Variable(value, name=name) for name, value in start_weights(recipe, flags)
        }
        layers = Layers(weights, tf.as_dtype(precision.compute))
        model = make_model(flags, layers)
        rate = recipe.learning_rate(logs[0].global_batch)
        step = make_step(recipe, flags, layers, model, rate=rate, loss_scale=precision.loss_scale)
    with tf.device("CPU:0"):  # where random kernels want it, so that no GPU is waited for
        iterations = tf.Variable(0, trainable=False)

    @tf.function(autograph=False)
    def iterate():
        return strategy.run(step, args=(iterations.assign_add(1), *next_batch()))

    names = of_all_ranks(strategy, [device_name(device) for device in devices])
    for log in logs:
        log.configured(
            parameters=count(weights),
            framework=f"tensorflow {tf.__version__}",
            versions=versions(),
            devices=names,
            precision=precision,
        )
    for iteration in range(1, flags.iterations + 1):
        losses = iterate()
        if logs[0].prints(iteration):
            # Fetching a loss waits for all that its device was given before, the update included.
            for log, loss in zip(logs, strategy.experimental_local_results(losses), strict=True):
                log.step(iteration, float(loss))
    digests = of_all_ranks(strategy, digests_of_replicas(strategy, weights))
    memory = of_all_ranks(strategy, [peak_memory(device) for device in devices])
    for log in logs:
        log.finished(digests, memory)


def prepare_devices(flags):
    """The names of this process's devices, ready for use."""
    if flags.device == "cpu":
        threads = flags.threads * LOCAL_DEVICES
        process.keep_to_own_cores(FIRST_RANK, threads)
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * LOCAL_DEVICES
        )
        return [f"CPU:{number}" for number in range(LOCAL_DEVICES)]
    gpus = tf.config.list_physical_devices("GPU")[LOCAL_RANK : LOCAL_RANK + LOCAL_DEVICES]
    if len(gpus) < LOCAL_DEVICES:
        raise Refused(
            f"TensorFlow sees {len(gpus)} GPUs of {LOCAL_DEVICES}; allowed: a build for GPUs, such"
            " as the image of envs/tensorflow2.image.yaml"
        )
    tf.config.set_visible_devices(gpus, "GPU")
    tf.config.experimental.enable_tensor_float_32_execution(False)  # fp32 means fp32, not TF32
    return [f"GPU:{number}" for number in range(LOCAL_DEVICES)]


def make_strategy(devices):
    if not CLUSTER:
        return tf.distribute.MirroredStrategy(devices)
    # A worker of several nodes has one device, and finds it itself. Left to choose, TensorFlow
    # averages GPUs' gradients through the CPUs.
    made_by = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=made_by.NCCL if devices[0].startswith("GPU") else made_by.AUTO
    )
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def make_input(recipe, flags, strategy, make_dataset):
    """A source of each replica's next batch, on its device."""
    if flags.input == "synthetic":

        def of_replica(context):
            replica = context.replica_id_in_sync_group
            with tf.device(strategy.extended.worker_devices[replica - FIRST_RANK]):
                return [tf.constant(array) for array in synthetic_batch(recipe, flags, replica)]

        fixed = strategy.experimental_distribute_values_from_function(of_replica)
        return lambda: fixed

    def of_ranks(_):
        turns = tf.data.Dataset.range(LOCAL_DEVICES).repeat()
        in_turn = tf.data.Dataset.choose_from_datasets(
            [make_dataset(flags, rank, WORLD_SIZE) for rank in RANKS], turns
        )
        return on_threads(in_turn, flags.loader_threads * LOCAL_DEVICES)

    return iter(strategy.distribute_datasets_from_function(of_ranks)).get_next


def make_step(recipe, flags, layers, model, *, rate, loss_scale):
    """One replica's iteration: takes its number and a batch, updates weights, returns the loss."""
    weights = list(layers.weights.values())
    velocities = [tf.Variable(tf.zeros_like(weight), trainable=False) for weight in weights]
    momentum, decay = optimizer_of(recipe, flags)
    scale = DynamicLossScale() if loss_scale == DYNAMIC else LossScale(loss_scale or 1.0)

    def differentiate(seed, *batch):
        layers.seed = seed
        with tf.GradientTape() as tape:
            loss = model(*batch)
            scaled = scale.value * loss
        gradients = dense(layers.weights, tape.gradient(scaled, weights))
        unscaled = [gradient / scale.value for gradient in gradients]
        return loss, decayed(recipe, decay, layers.weights, unscaled)

    if flags.compile:
        differentiate = tf.function(differentiate, jit_compile=True, autograph=False)

    def update(gradients):
        # Keras 3 needs seven kernels for what is one here.
        for weight, velocity, gradient in zip(weights, velocities, gradients, strict=True):
            tf.raw_ops.ResourceApplyMomentum(
                var=weight.handle,
                accum=velocity.handle,
                lr=rate,
                grad=gradient,
                momentum=momentum,
            )

    def step(iteration, *batch):
        replica = tf.distribute.get_replica_context()
        rank = tf.cast(replica.replica_id_in_sync_group, tf.int32)
        seed = tf.stack([flags.seed % 2**30 + rank, iteration])
        loss, gradients = differentiate(seed, *batch)
        scale.guard(update, replica.all_reduce("mean", gradients))
        return loss

    return step


class LossScale:
    """A fixed factor that keeps float16 gradients from vanishing; 1 does nothing."""

    def __init__(self, value):
        self.value = value

    def guard(self, update, gradients):
        """Update the weights with gradients."""
        update(gradients)


class DynamicLossScale:
    """A factor that halves when gradients overflow, and doubles after 2000 steps without.

    Source: Micikevicius et al., Mixed Precision Training (2017).
    """

    def __init__(self):
        self.value = own_variable(2.0**15)
        self._good_steps = own_variable(0)

    def guard(self, update, gradients):
        """Update the weights if all gradients are finite: averages, the same on all ranks."""
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(g)) for g in gradients])
        tf.cond(finite, lambda: update(gradients), lambda: None)
        good = tf.where(finite, self._good_steps + 1, 0)
        grows = good == 2000
        self._good_steps.assign(tf.where(grows, 0, good))
        factor = tf.where(finite, tf.where(grows, 2.0, 1.0), 0.5)
        self.value.assign(self.value * factor)


def of_all_ranks(strategy, values):
    """The values of all ranks, in their order; `values` are those of this process's ranks."""
    if not CLUSTER:
        return values
    (value,) = values
    message = np.frombuffer(json.dumps(value).encode().ljust(MESSAGE_BYTES), np.uint8)
    messages = strategy.gather(tf.constant(message[np.newaxis], tf.int32), axis=0)
    return [json.loads(bytes(one.tolist())) for one in messages.numpy()]


def digests_of_replicas(strategy, weights):
    """A short digest of all weights, for each of this process's replicas."""
    replicas = zip(*map(strategy.experimental_local_results, weights.values()), strict=True)
    return [digest(weight.numpy() for weight in replica) for replica in replicas]


def peak_memory(device):
    """Bytes: the most GPU memory in use, or this rank's share of the process's main memory."""
    if device.startswith("GPU"):
        return tf.config.experimental.get_memory_info(device)["peak"]
    return process.peak_memory() // LOCAL_DEVICES


def device_name(device):
    """The GPU's name, or "cpu"."""
    kind, _, number = device.partition(":")
    if kind == "CPU":
        return "cpu"
    gpu = tf.config.get_visible_devices("GPU")[int(number)]
    return tf.config.experimental.get_device_details(gpu)["device_name"]


def versions():
    build = tf.sysconfig.get_build_info()
    found = {"python": process.python_version(), "tensorflow": tf.__version__}
    for name, key in (("cuda", "cuda_version"), ("cudnn", "cudnn_version")):
        if key in build:
            found[name] = build[key]
    return found
