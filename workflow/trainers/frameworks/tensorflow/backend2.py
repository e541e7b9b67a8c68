"""TensorFlow 2 for trainers.contract.driver: one process per device, on one node as on many.

A model is made from the flags and Layers; it takes a batch and returns its mean loss. What reads
data returns a tf.data.Dataset of batches.
"""

import numpy as np
import tensorflow as tf

from trainers.contract import backend, process
from trainers.contract.steplog import Refused
from trainers.contract.weights import synthetic_batch
from trainers.frameworks.tensorflow.before import CLUSTER
from trainers.frameworks.tensorflow.counts import Counter
from trainers.frameworks.tensorflow.inputs import batches_read, timed
from trainers.frameworks.tensorflow.layers import Layers
from trainers.frameworks.tensorflow.optimizers import make_update
from trainers.frameworks.tensorflow.scaling import make_scale
from trainers.frameworks.tensorflow.shared import arranged, convolved_by, dense


class Backend(backend.Backend):
    mixed = {"cpu": ("bfloat16",), "cuda": ("float16", "bfloat16")}

    def __init__(self, flags, place):
        super().__init__(flags, place)
        self.device = "CPU:0"
        if flags.device == "cpu":
            tf.config.threading.set_intra_op_parallelism_threads(flags.threads)
            tf.config.threading.set_inter_op_parallelism_threads(flags.threads)
        else:
            self._take_gpu()
        self.library = "NCCL" if flags.device == "cuda" else "TensorFlow over gRPC"
        self.strategy = self._connect()

    def _take_gpu(self):
        gpus, local = tf.config.list_physical_devices("GPU"), self.place.local_rank
        if len(gpus) <= local:
            raise Refused(
                f"TensorFlow sees {len(gpus)} GPUs, local rank {local} needs another; allowed: a"
                " build for GPUs, such as the image of envs/tensorflow2.image.yaml, on GPUs"
            )
        tf.config.set_visible_devices(gpus[local], "GPU")
        tf.config.experimental.enable_tensor_float_32_execution(False)  # fp32 means fp32, not TF32
        self.device = "GPU:0"
        self.device_name = tf.config.experimental.get_device_details(gpus[local])["device_name"]

    def _connect(self):
        """What connects the processes; a single one needs no connection."""
        if not CLUSTER:
            return tf.distribute.MirroredStrategy([self.device])
        # It finds the device itself. Left to choose, it averages GPUs' gradients through the CPUs.
        made_by = tf.distribute.experimental.CommunicationImplementation
        options = tf.distribute.experimental.CommunicationOptions(
            implementation=made_by.NCCL if self.device.startswith("GPU") else made_by.AUTO
        )
        return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)

    def numbers(self, array):
        with tf.device(self.device):
            return tf.identity(array)

    def array(self, numbers):
        (own,) = self.strategy.experimental_local_results(numbers)
        return np.asarray(own)

    def all_reduce(self, numbers):
        summed = self._added(numbers)
        self.array(summed)[0]  # waits for all
        return summed

    @tf.function(autograph=False, reduce_retracing=True)
    def _added(self, numbers):
        return self.strategy.run(summed, args=([numbers],))[0]

    def convolve(self, images, filters):
        with tf.device(self.device):
            return tf.constant(convolved_by(tf, images.numpy(), filters.numpy()))

    def versions(self):
        build = tf.sysconfig.get_build_info()
        found = {"python": process.python_version(), "tensorflow": tf.__version__}
        for name, key in (("cuda", "cuda_version"), ("cudnn", "cudnn_version")):
            if key in build:
                found[name] = build[key]
        return f"tensorflow {tf.__version__}", found

    def peak_memory(self):
        if self.device.startswith("GPU"):
            return tf.config.experimental.get_memory_info(self.device)["peak"]
        return process.peak_memory()

    def step(self, work):
        return DataParallel(self, work)


def summed(numbers):
    # An argument is on no device, of which TensorFlow would complain.
    numbers = list(map(tf.identity, numbers))
    return tf.distribute.get_replica_context().all_reduce("sum", numbers)


class DataParallel(backend.Step):
    """The whole model on each rank: a function takes a batch and trains on it."""

    def __init__(self, made, work):
        flags, strategy, self._rank = work.flags, made.strategy, made.place.rank
        self._made, self._flags, self.feed = made, flags, self
        self._counter = counter = Counter(work.recipe, flags.shape)
        self._next_batch = self._make_input(work)
        with strategy.scope():
            starts = {name: arranged(work.start(name)) for name in work.shapes}
            self.named = {name: tf.Variable(one, name=name) for name, one in starts.items()}
            self._layers = Layers(self.named, tf.as_dtype(work.precision.compute))
            self._model = work.model(flags, self._layers)
            self._update = make_update(work.recipe, flags, self.named, work.rate)
            self._scale = make_scale(work.precision)
        with tf.device("CPU:0"):  # where random kernels want it, so that no GPU is waited for
            self._iterations = tf.Variable(0, trainable=False)
            self._seconds = tf.Variable(0.0, trainable=False, dtype=tf.float64)  # for batches
        with tf.device(made.device):  # where batches are
            self._sums = [tf.Variable(0, trainable=False, dtype=tf.int64) for _ in counter.units]
        self._differentiate = self._gradients
        if flags.compile:
            self._differentiate = tf.function(self._gradients, jit_compile=True, autograph=False)

    def _make_input(self, work):
        """A source of this rank's next batch, on its device; behind it are its counts, if any."""
        flags, place, strategy = work.flags, self._made.place, self._made.strategy
        if flags.input == "synthetic":
            batch = self._counter.with_counts(synthetic_batch(work.recipe, flags, place.rank))
            with tf.device(strategy.extended.worker_devices[0]):
                fixed = tuple(map(tf.constant, batch))
            return lambda: fixed

        def dataset_of(_):
            dataset = work.batches(flags, place.rank, place.world_size)
            return batches_read(work.recipe, flags, self._counter, dataset)

        return iter(strategy.distribute_datasets_from_function(dataset_of)).get_next

    @tf.function(autograph=False)
    def _iterate(self):
        if self._flags.input == "synthetic":
            batch = self._next_batch()
        else:
            batch, seconds = timed(self._next_batch)
            self._seconds.assign_add(seconds)
        batch, counts = self._counter.split(batch)
        run = self._made.strategy.run
        run(self._add_up, args=counts)
        return run(self._replica, args=(self._iterations.assign_add(1), *batch))

    def _add_up(self, *counts):
        for counted, one in zip(self._sums, counts):
            counted.assign_add(one)

    def _replica(self, iteration, *batch):
        """This rank's iteration."""
        seed = tf.stack([tf.constant((self._flags.seed + self._rank) % 2**31), iteration])
        loss, gradients = self._differentiate(seed, *batch)
        replica = tf.distribute.get_replica_context()
        self._scale.guard(self._update, replica.all_reduce("mean", gradients))
        return loss

    def _gradients(self, seed, *batch):
        self._layers.seed = seed
        with tf.GradientTape() as tape:
            loss = self._model(*batch)
            scaled = self._scale.value * loss
        gradients = tape.gradient(scaled, list(self.named.values()))
        return loss, [one / self._scale.value for one in dense(self.named, gradients)]

    @tf.function(autograph=False)
    def _judged(self):
        self._layers.seed = None
        batch, _ = self._counter.split(self._next_batch())
        return self._made.strategy.run(self._model, args=batch)

    def sizes(self):
        return {name: weight.shape.num_elements() for name, weight in self.named.items()}

    def weights(self):
        for name, weight in self.named.items():
            yield name, weight.numpy()

    def without_dropout(self):
        return float(self._judged())

    def __call__(self, wanted):
        return self._iterate()

    def fetch(self, loss):
        # Waits for all that the device was given before, the update included.
        return float(loss)

    # As a Feed: the function takes its batches itself.
    def take(self):
        self._read()

    @tf.function(autograph=False)
    def _read(self):
        return self._next_batch()

    def waited(self):
        return float(self._seconds)

    def counted(self, batches):
        return self._made.total(self._counter.named(self._sums))
