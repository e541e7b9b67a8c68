"""TensorFlow 2 for trainers.contract.driver: one process per device, on one node as on many.

trainers.launchers.tensorflow starts them; TF_CONFIG names them all where there are several.

A model is made from the flags and Layers; it takes a batch and returns its mean loss. What reads
data returns, for flags, rank and world size, a tf.data.Dataset of batches.
"""

from functools import partial

import tensorflow as tf

from trainers.contract import backend as contract
from trainers.contract import settings
from trainers.contract.weights import synthetic_batch
from trainers.frameworks.tensorflow.inputs import Counter, batches_read, timed
from trainers.frameworks.tensorflow.layers import Layers
from trainers.frameworks.tensorflow.optimizers import make_scale, make_update
from trainers.frameworks.tensorflow.shared import Eager, dense, start_weights
from trainers.launchers.tensorflow import SETTINGS


class Backend(Eager):
    computes = {"cpu": ("bfloat16",), "cuda": ("float16", "bfloat16", "tf32")}

    def __init__(self, flags, place):
        super().__init__(flags, place)
        settings.variables(SETTINGS)  # the launcher's
        if flags.device == "cpu":
            self.device, self.library = "CPU:0", "TensorFlow over gRPC"
            tf.config.threading.set_intra_op_parallelism_threads(flags.threads)
            tf.config.threading.set_inter_op_parallelism_threads(flags.threads)
        else:
            self.device, self.library = "GPU:0", "NCCL"
            self.device_name = take_gpu(place.local_rank)
            # Which holds for XLA, too.
            tf32 = settings.switched("tensor_float_32_execution", flags.precision == "tf32")
            tf.config.experimental.enable_tensor_float_32_execution(tf32)
        self.strategy = self._connect()

    def _connect(self):
        """What connects the processes; a single one needs no connection."""
        if self.place.world_size == 1:
            return tf.distribute.MirroredStrategy([self.device])
        # Left to choose, it averages GPUs' gradients through the CPUs.
        made_by = tf.distribute.experimental.CommunicationImplementation
        options = tf.distribute.experimental.CommunicationOptions(
            implementation=made_by.NCCL if self.flags.device == "cuda" else made_by.AUTO
        )
        return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)

    def all_reduce(self, numbers):
        (summed,) = self.strategy.experimental_local_results(self._summed(numbers))
        summed[0].numpy()  # waits for all
        return summed

    @tf.function(autograph=False, reduce_retracing=True)
    def _summed(self, numbers):
        return self.strategy.run(sum_over_ranks, args=(numbers,))

    def versions(self):
        build = tf.sysconfig.get_build_info()
        of_gpus = {one: build.get(f"{one}_version") for one in ("cuda", "cudnn")}
        return {"tensorflow": tf.__version__, **{k: v for k, v in of_gpus.items() if v}}

    def gpu_memory(self):
        return tf.config.experimental.get_memory_info(self.device)["peak"]

    def step(self, work):
        return DataParallel(self, work)


def take_gpu(number):
    """Train on the node's GPU of that number alone; returns its name."""
    gpus = tf.config.list_physical_devices("GPU")
    if len(gpus) <= number:
        what = f"TensorFlow sees {len(gpus)} GPUs, local rank {number} needs another"
        raise contract.no_gpu(what, "tensorflow2")
    # For NCCL and cuDNN: TensorFlow leaves them too little. Source: tensorflow/tensorflow#44810.
    settings.variables({"TF_DEVICE_MIN_SYS_MEMORY_IN_MB": "4096"})
    tf.config.set_visible_devices(gpus[number], "GPU")
    return tf.config.experimental.get_device_details(gpus[number])["device_name"]


def sum_over_ranks(numbers):
    # An argument is on no device, of which TensorFlow would complain.
    numbers = tf.identity(numbers)
    return tf.distribute.get_replica_context().all_reduce("sum", numbers)


def _updated(update, gradients):
    """Update the weights; returns a tensor, as functions that XLA compiles do."""
    with tf.control_dependencies([update(gradients)]):
        return tf.constant(True)


class DataParallel(contract.Step):
    """The whole model on each rank: one function takes a batch, times and counts it, and trains."""

    def __init__(self, backend, work):
        flags, place, self._backend = work.flags, backend.place, backend
        self._strategy, self._reads = backend.strategy, flags.input != "synthetic"
        self._counter = Counter(work.recipe, flags.shape)
        self._next_batch = self._make_input(work)
        # As a Feed; made once, because each function is traced anew.
        self.feed, self.take = self, tf.function(self._next_batch, autograph=False)
        with self._strategy.scope():
            starts = start_weights(work)
            self._weights = {name: tf.Variable(one, name=name) for name, one in starts.items()}
            self._layers = Layers(self._weights, tf.as_dtype(work.precision.dtype))
            self._model = work.model(flags, self._layers)
            self._update = make_update(work, self._weights)
            self._scale = make_scale(work.precision)
        self._seed = (flags.seed + place.rank) % 2**31
        with tf.device("CPU:0"):  # where random kernels want it, so that no GPU is waited for
            self._iterations = tf.Variable(0, trainable=False)
            self._waited = tf.Variable(0.0, trainable=False, dtype=tf.float64)  # for batches
        with tf.device(backend.device):  # where batches are
            units = self._counter.units
            self._sums = [tf.Variable(0, trainable=False, dtype=tf.int64) for _ in units]
        if flags.compile:
            compiled = partial(tf.function, jit_compile=True, autograph=False)
            # Two functions, because ranks average gradients in between.
            self._gradients = compiled(self._gradients)
            self._update = compiled(partial(_updated, self._update))

    def _make_input(self, work):
        """A source of this rank's next batch, on its device; its counts, if any, come after it."""
        flags, (rank, _, world_size) = work.flags, self._backend.place
        if not self._reads:
            batch = self._counter.with_counts(synthetic_batch(work.recipe, flags, rank))
            with tf.device(self._strategy.extended.worker_devices[0]):
                fixed = tuple(map(tf.constant, batch))
            return lambda: fixed

        def dataset_of(_):
            return batches_read(work, self._counter, work.batches(flags, rank, world_size))

        return iter(self._strategy.distribute_datasets_from_function(dataset_of)).get_next

    def weights(self):
        return self._weights.items()

    def read(self, weight):
        return weight.numpy()

    def without_dropout(self):
        return float(self._judge())

    @tf.function(autograph=False)
    def _judge(self):
        self._layers.seed = None
        batch, _ = self._counter.split(self._next_batch())
        return self._strategy.run(self._model, args=batch)

    def __call__(self, wanted):
        return self._iterate()

    @tf.function(autograph=False)
    def _iterate(self):
        if self._reads:
            batch, seconds = timed(self._next_batch)
            self._waited.assign_add(seconds)
        else:
            batch = self._next_batch()
        batch, counts = self._counter.split(batch)
        self._strategy.run(self._add_up, args=counts)
        return self._strategy.run(self._train, args=(self._iterations.assign_add(1), *batch))

    def _add_up(self, *counts):
        for counted, one in zip(self._sums, counts):
            counted.assign_add(one)

    def _train(self, iteration, *batch):
        seed = tf.stack([tf.constant(self._seed), iteration])
        loss, gradients = self._gradients(seed, *batch)
        replica = tf.distribute.get_replica_context()
        self._scale.guard(self._update, replica.all_reduce("mean", gradients))
        return loss

    def _gradients(self, seed, *batch):
        self._layers.seed = seed
        with tf.GradientTape() as tape:
            loss = self._model(*batch)
            scaled = self._scale.value * loss
        gradients = tape.gradient(scaled, list(self._weights.values()))
        return loss, self._scale.unscaled(dense(self._weights, gradients))

    def alone(self):
        batch, _ = self._counter.split(self.take())
        return contract.seconds_alone(lambda: float(self._pass_alone(*batch)[0]))

    @tf.function(autograph=False)
    def _pass_alone(self, *batch):
        # Returns the gradients, too: TensorFlow would not compute unused ones.
        seed = tf.constant([self._seed, 1])
        return self._strategy.run(self._gradients, args=(seed, *batch))

    def fetch(self, loss):
        # Waits for all that the device was given before, the update included.
        return float(loss)

    def waited(self):
        return float(self._waited)

    def counted(self, batches):
        return self._backend.total(self._counter.named(self._sums))
