"""TensorFlow 1.15 for trainers.contract.driver: Horovod, one process per device, one static graph.

It uses backend_tf2's models and readers. The part `dali` takes flags, rank, world size and GPU, and
returns the tensors of a batch that DALI reads.
"""

import functools
import re

import horovod
import horovod.tensorflow as hvd
import tensorflow
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig
from tensorflow.python.client import device_lib

from trainers.contract import backend as contract
from trainers.contract import settings
from trainers.contract.steplog import Refused
from trainers.contract.weights import synthetic_batch
from trainers.frameworks.horovod import connected
from trainers.frameworks.tensorflow.inputs import Counter, batches_read, timed
from trainers.frameworks.tensorflow.layers import Layers
from trainers.frameworks.tensorflow.optimizers import make_scale, make_update
from trainers.frameworks.tensorflow.shared import Eager, dense, start_weights

tf = tensorflow.compat.v1

# Source: NVIDIA DeepLearningExamples, TensorFlow/Classification/ConvNets/runtime/runner.py.
GPU_SETTINGS = {
    "TF_GPU_THREAD_MODE": "gpu_private",
    "TF_SYNC_ON_FINISH": "0",
    "TF_USE_CUDNN_BATCHNORM_SPATIAL_PERSISTENT": "1",
}


class Backend(Eager):
    # TF32 is for the launch's variables to switch: TensorFlow 1.15 has no word for it.
    computes = {"cuda": ("float16", "tf32")}

    def __init__(self, flags, place):
        super().__init__(flags, place)
        tf.logging.set_verbosity(tf.logging.ERROR)
        tf.enable_resource_variables()
        self.options = options = tf.ConfigProto()
        if flags.device == "cpu":
            if flags.compile or flags.dali:
                raise Refused("--compile and --dali need --device cuda")
            self.device = "/cpu:0"
            options.intra_op_parallelism_threads = flags.threads
            options.inter_op_parallelism_threads = flags.threads
        else:
            self.device = "/gpu:0"
            settings.variables(GPU_SETTINGS)
            options.gpu_options.visible_device_list = str(place.local_rank)
            # Else nothing is left for DALI's buffers.
            options.gpu_options.allow_growth = settings.switched("allow_growth", flags.dali)
            self.device_name = gpu_name(options, place.local_rank)
        if flags.compile:
            options.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
        self.library = connected(hvd, flags, place.world_size)
        tf.enable_eager_execution(options)  # of all that is not in a Step's graph

    def all_reduce(self, numbers):
        with tf.device(self.device):
            summed = hvd.allreduce(numbers, op=hvd.Sum)
            summed[0].numpy()  # waits for all
        return summed

    def versions(self):
        return {"tensorflow": tf.__version__, "horovod": horovod.__version__}

    def gpu_memory(self):
        with tf.device(self.device):
            return tensorflow.contrib.memory_stats.MaxBytesInUse().numpy().item()

    def step(self, work):
        return DataParallel(self, work)

    def disconnect(self):
        hvd.shutdown()


def gpu_name(options, local_rank):
    """The name of the GPU that a session with these options gets."""
    for device in device_lib.list_local_devices(options):
        if device.device_type == "GPU":
            return re.search("name: ([^,]*)", device.physical_device_desc).group(1)
    raise contract.no_gpu(f"TensorFlow sees no GPU for local rank {local_rank}", "ngc-tensorflow1")


class DataParallel(contract.Step):
    """The whole model on each rank: one graph takes a batch, times and counts it, and trains."""

    def __init__(self, backend, work):
        if work.precision.compute == "float16":
            backend.options.graph_options.rewrite_options.auto_mixed_precision = RewriterConfig.ON
        self._backend, self.feed = backend, self
        self._counter = Counter(work.recipe, work.flags.shape)
        with tf.Graph().as_default() as graph:
            self._session = tf.Session(graph=graph, config=backend.options)
            self._build(work)

    def _build(self, work):
        flags, place, session = work.flags, self._backend.place, self._session
        batch, waited, start_input = self._make_input(work)
        batch, counts = self._counter.split(batch)
        sums = [tf.Variable(tf.zeros_like(one), trainable=False).assign_add(one) for one in counts]
        starts = start_weights(work)
        # Fed, because a graph cannot hold 2 GB.
        given = {name: tf.placeholder(tf.float32, start.shape) for name, start in starts.items()}
        self._weights = {name: tf.Variable(start, name=name) for name, start in given.items()}
        layers = Layers(self._weights)
        model = work.model(flags, layers)
        # Built first, while layers have no seed.
        self._judge = model(*batch) if work.dropout else None
        layers.seed = make_seed(flags, place)
        loss = model(*batch)
        scale = make_scale(work.precision)
        update = make_update(work, self._weights)
        updated = scale.guard(update, make_gradients(loss, scale, self._weights, place))
        iterate = tf.group(updated, waited, *sums, *tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        with tf.control_dependencies([iterate]):
            loss = tf.identity(loss)  # fetching it waits for the whole iteration
        self._fetched = iterate, [loss, waited, *(sum_over_ranks(one, place) for one in sums)]
        # All in one go: each new thing that is asked of a session takes it a while to prepare.
        values = {given[name]: start for name, start in starts.items()}
        session.run([weight.initializer for weight in self._weights.values()], values)
        own = {weight.name for weight in self._weights.values()}
        others = [variable for variable in tf.global_variables() if variable.name not in own]
        session.run(tf.variables_initializer(others))
        if start_input is not None:
            start_input(session)

    def _make_input(self, work):
        """The next batch, with its counts, the seconds waited for batches, and what starts them."""
        flags, (rank, local_rank, world_size) = work.flags, self._backend.place
        if flags.input == "synthetic":
            arrays = self._counter.with_counts(synthetic_batch(work.recipe, flags, rank))
            # Fed, because a graph cannot hold 2 GB.
            feed = {tf.placeholder(array.dtype, array.shape): array for array in arrays}
            batches = tf.data.Dataset.from_tensors(tuple(feed)).repeat()
            next_batch, start = iterated(flags, batches, feed)
            return next_batch(), tf.constant(0.0, tf.float64), start
        if flags.dali:
            dali = work.part("dali", None)
            if dali is None:
                raise Refused("--dali reads images; allowed here: the usual reader")
            next_batch = functools.partial(dali, flags, rank, world_size, local_rank)
            start = None  # by itself
        else:
            dataset = work.batches(flags, rank, world_size)
            batches = batches_read(work, self._counter, dataset)
            next_batch, start = iterated(flags, batches, {})
        batch, seconds = timed(next_batch)
        with tf.device("/cpu:0"):
            waited = tf.Variable(0.0, trainable=False, dtype=tf.float64)
        return batch, waited.assign_add(seconds), start

    def weights(self):
        return self._weights.items()

    def arrays(self):
        return self._session.run(self._weights).items()

    def without_dropout(self):
        return self._session.run(self._judge).item()

    def begin(self):
        self._iterate, self._iterate_for_loss = map(self._session.make_callable, self._fetched)

    def __call__(self, wanted):
        return self._iterate_for_loss() if wanted else self._iterate()

    def fetch(self, loss):
        loss, self._waited, *self._sums = loss
        return loss.item()

    # As a Feed.
    def waited(self):
        return self._waited.item()

    def counted(self, batches):
        return self._counter.named(self._sums)


def iterated(flags, batches, feed):
    """What makes the next batch of a dataset, on the device, and what starts it in a session."""
    if flags.device == "cuda":
        batches = batches.apply(tf.data.experimental.prefetch_to_device("/gpu:0"))
    iterator = tf.data.make_initializable_iterator(batches)
    return iterator.get_next, lambda session: session.run(iterator.initializer, feed)


def make_seed(flags, place):
    """Two int32 numbers that depend on this rank, and change with each iteration."""
    with tf.device("/cpu:0"):  # where random kernels want it, so that no GPU is waited for
        iteration = tf.Variable(0, trainable=False).assign_add(1)
        return tf.stack([tf.constant((flags.seed + place.rank) % 2**31), iteration])


def make_gradients(loss, scale, weights, place):
    """The loss's gradients, in the order of the weights, which Horovod averages over the ranks."""
    gradients = dense(weights, tf.gradients(scale.value * loss, list(weights.values())))
    gradients = scale.unscaled(gradients)
    return gradients if place.world_size == 1 else list(map(hvd.allreduce, gradients))


def sum_over_ranks(counts, place):
    counts = tf.identity(counts)
    return counts if place.world_size == 1 else hvd.allreduce(counts, op=hvd.Sum)
