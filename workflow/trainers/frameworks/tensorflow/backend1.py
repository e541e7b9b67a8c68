"""TensorFlow 1.15 for trainers.contract.driver, not run: Horovod, one static graph.

A model is made from the flags and Layers; it takes a batch and returns its mean loss. What reads
data returns a tf.data.Dataset of batches; DALI, which gives tensors, is options["dali"].
"""

import os
import re

import horovod
import horovod.tensorflow as hvd
import tensorflow
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig
from tensorflow.python.client import device_lib

from trainers.contract import backend, process
from trainers.contract.driver import found
from trainers.contract.steplog import Refused
from trainers.contract.weights import synthetic_batch
from trainers.frameworks.horovod import check_horovod, library_of
from trainers.frameworks.tensorflow.counts import Counter
from trainers.frameworks.tensorflow.inputs import batches_read, timed
from trainers.frameworks.tensorflow.layers import Layers
from trainers.frameworks.tensorflow.optimizers import make_update
from trainers.frameworks.tensorflow.scaling import make_scale
from trainers.frameworks.tensorflow.shared import arranged, convolved_by, dense

tf = tensorflow.compat.v1

# What is set already stays. DOUBT: all of it belongs into system.yaml's `environment:`.
# Source: NVIDIA DeepLearningExamples, TensorFlow/Classification/ConvNets/runtime/runner.py.
GPU_SETTINGS = {
    "NVIDIA_TF32_OVERRIDE": "0",  # fp32 means fp32, not TF32
    "TF_GPU_THREAD_MODE": "gpu_private",
    "TF_SYNC_ON_FINISH": "0",
    "TF_USE_CUDNN_BATCHNORM_SPATIAL_PERSISTENT": "1",
}


class Backend(backend.Backend):
    mixed = {"cuda": ("float16",)}

    def __init__(self, flags, place):
        super().__init__(flags, place)
        tf.logging.set_verbosity(tf.logging.ERROR)
        tf.enable_resource_variables()
        self.settings = settings = tf.ConfigProto()
        if flags.device == "cpu":
            if flags.compile or flags.dali:
                raise Refused("--compile and --dali need --device cuda")
            settings.intra_op_parallelism_threads = flags.threads
            settings.inter_op_parallelism_threads = flags.threads
        else:
            for name, value in GPU_SETTINGS.items():
                os.environ.setdefault(name, value)
            settings.gpu_options.visible_device_list = str(place.local_rank)
            self.device_name = gpu_name(settings, place)
        if flags.compile:
            settings.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
        check_horovod(hvd, flags, place.world_size)
        hvd.init()
        self.library = library_of(hvd, flags.device)
        self.session, self._sums = None, {}

    def open(self):
        """The one session; what is asked of it later grows the same graph."""
        if self.session is None:
            self.session = tf.Session(config=self.settings)
        return self.session

    # DOUBT: today's trial is eager; here each shape has a placeholder and a sum in the graph, and
    # what is timed holds a copy to the device and back. Eager in a trial: flags.trial in __init__.
    def numbers(self, array):
        return array

    def array(self, numbers):
        return numbers

    def all_reduce(self, numbers):
        key = numbers.shape, numbers.dtype
        if key not in self._sums:
            given = tf.placeholder(numbers.dtype, numbers.shape)
            self._sums[key] = given, hvd.allreduce(given, op=hvd.Sum)
        given, summed = self._sums[key]
        return self.open().run(summed, {given: numbers})

    def convolve(self, images, filters):
        return convolved_by(tf, images, filters, self.open().run)

    def versions(self):
        found = {"tensorflow": tf.__version__, "horovod": horovod.__version__}
        return f"tensorflow {tf.__version__}", {"python": process.python_version(), **found}

    def peak_memory(self):
        if self.flags.device == "cuda":
            with tf.device("/gpu:0"):
                return self.session.run(tensorflow.contrib.memory_stats.MaxBytesInUse()).item()
        return process.peak_memory()

    def step(self, work):
        return DataParallel(self, work)


def gpu_name(settings, place):
    """The name of the GPU that a session with these settings gets."""
    for device in device_lib.list_local_devices(settings):
        if device.device_type == "GPU":
            return re.search("name: ([^,]*)", device.physical_device_desc).group(1)
    raise Refused(
        f"TensorFlow sees no GPU for local rank {place.local_rank}; allowed: a build for GPUs, such"
        " as the image of envs/ngc-tensorflow1.image.yaml, on GPUs"
    )


class DataParallel(backend.Step):
    """The whole model on each rank: one graph, of which each run takes a batch itself."""

    def __init__(self, made, work):
        flags, self._made, self.feed = work.flags, made, self
        if work.precision.compute == "float16":
            rewrite = made.settings.graph_options.rewrite_options
            rewrite.auto_mixed_precision = RewriterConfig.ON
        self._counter = counter = Counter(work.recipe, flags.shape)
        batch, waited = self._make_input(work)
        self._take = tf.group(*batch)
        batch, counts = counter.split(batch)
        sums = [tf.Variable(tf.zeros_like(one), trainable=False).assign_add(one) for one in counts]
        # Fed, because a graph cannot hold 2 GB.
        starts = {name: tf.placeholder(tf.float32, arranged(work.start(name)).shape) for name in work.shapes}
        self.named = {name: tf.Variable(start, name=name) for name, start in starts.items()}
        layers = Layers(self.named)
        model = work.model(flags, layers)
        # Built first, while layers have no seed.
        self._without_dropout = model(*batch) if work.dropout else None
        layers.seed = make_seed(flags, made.place)
        loss = model(*batch)
        scale = make_scale(work.precision)
        update = make_update(work.recipe, flags, self.named, work.rate)
        updated = scale.guard(update, make_gradients(loss, scale, self.named, made.place))
        every = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        iterate = tf.group(updated, waited, *sums, *every)
        with tf.control_dependencies([iterate]):
            loss = tf.identity(loss)  # fetching it waits for the whole iteration
        self._graph = iterate, [loss, waited, *sums]
        session = made.open()
        # All in one go, for each new thing that is asked of a session takes it a while to prepare.
        values = {starts[name]: arranged(work.start(name)) for name in starts}
        session.run([weight.initializer for weight in self.named.values()], values)
        own = {weight.name for weight in self.named.values()}
        others = [one for one in tf.global_variables() if one.name not in own]
        session.run(tf.variables_initializer(others))
        self._start_input(session)

    def _make_input(self, work):
        """The tensors of the next batch, its counts behind it, and the seconds waited so far."""
        flags, (rank, local_rank, world_size) = work.flags, self._made.place
        self._start_input = lambda session: None  # DALI starts by itself
        if flags.input == "synthetic":
            arrays = self._counter.with_counts(synthetic_batch(work.recipe, flags, rank))
            # Fed, because a graph cannot hold 2 GB.
            feed = {tf.placeholder(array.dtype, array.shape): array for array in arrays}
            dataset = tf.data.Dataset.from_tensors(tuple(feed)).repeat()
            return self._next_of(dataset, feed)(), tf.constant(0.0, tf.float64)
        if flags.dali:
            if "dali" not in work.options:
                raise Refused("--dali reads images; allowed here: the usual reader")

            def next_batch():
                return found(work.options["dali"])(flags, rank, world_size, local_rank)
        else:
            dataset = work.batches(flags, rank, world_size)
            next_batch = self._next_of(batches_read(work.recipe, flags, self._counter, dataset), {})
        batch, seconds = timed(next_batch)
        with tf.device("/cpu:0"):
            waited = tf.Variable(0.0, trainable=False, dtype=tf.float64)
        return batch, waited.assign_add(seconds)

    def _next_of(self, dataset, feed):
        """What makes the next batch of a dataset, on the device."""
        if self._made.flags.device == "cuda":
            dataset = dataset.apply(tf.data.experimental.prefetch_to_device("/gpu:0"))
        iterator = tf.data.make_initializable_iterator(dataset)
        self._start_input = lambda session: session.run(iterator.initializer, feed)
        return iterator.get_next

    def sizes(self):
        return {name: weight.shape.num_elements() for name, weight in self.named.items()}

    def weights(self):
        # All in one go, too.
        return self._made.session.run(self.named).items()

    def without_dropout(self):
        return self._made.session.run(self._without_dropout).item()

    def begin(self):
        self._iterate, self._iterate_for_loss = map(self._made.session.make_callable, self._graph)
        self._take = self._made.session.make_callable(self._take)

    def __call__(self, wanted):
        return self._iterate_for_loss() if wanted else self._iterate()

    def fetch(self, loss):
        loss, self._waited, *self._summed = loss
        return loss.item()

    # As a Feed: the graph takes its batches itself.
    def take(self):
        self._made.session.run(self._take)

    def waited(self):
        return self._waited.item()

    def counted(self, batches):
        # DOUBT: today Horovod sums in the same run; here in one of its own, after the loss.
        return self._made.total(self._counter.named(self._summed))


def make_seed(flags, place):
    """Two int32 numbers that depend on this rank, and change with each iteration."""
    with tf.device("/cpu:0"):  # where random kernels want it, so that no GPU is waited for
        iteration = tf.Variable(0, trainable=False).assign_add(1)
        return tf.stack([tf.constant((flags.seed + place.rank) % 2**31), iteration])


def make_gradients(loss, scale, weights, place):
    """The loss's gradients, in the order of the weights, which Horovod averages over the ranks."""
    gradients = dense(weights, tf.gradients(scale.value * loss, list(weights.values())))
    gradients = [gradient / scale.value for gradient in gradients]
    return gradients if place.world_size == 1 else list(map(hvd.allreduce, gradients))
