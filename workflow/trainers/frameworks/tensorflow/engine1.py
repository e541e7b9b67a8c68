"""Train with TensorFlow 1.15's static graph and Horovod: one process per device."""

import os
import platform
import re
import resource

import horovod
import horovod.tensorflow as hvd
import resnet50
import steplog
import tensorflow
from tensorflow.python.client import device_lib
from tensorflow2.data import batches, on_threads
from tensorflow2.model import ResNet50

tf = tensorflow.compat.v1

RANK = int(os.environ.get("HOROVOD_RANK", "0"))
LOCAL_RANK = int(os.environ.get("HOROVOD_LOCAL_RANK", "0"))
WORLD_SIZE = int(os.environ.get("HOROVOD_SIZE", "1"))

# What is set already stays.
# Source: NVIDIA DeepLearningExamples, TensorFlow/Classification/ConvNets/runtime/runner.py.
GPU_SETTINGS = {
    "NVIDIA_TF32_OVERRIDE": "0",  # fp32 is fp32
    "TF_GPU_THREAD_MODE": "gpu_private",
    "TF_SYNC_ON_FINISH": "0",
    "TF_USE_CUDNN_BATCHNORM_SPATIAL_PERSISTENT": "1",
}

LOSS_SCALES = {"static": resnet50.STATIC_LOSS_SCALE, "dynamic": "dynamic"}


def main():
    flags = steplog.parse_flags()
    log = steplog.StepLog(flags, RANK, WORLD_SIZE)
    with log.to_the_end():
        train(flags, log)


def train(flags, log):
    loss_scale = choose_loss_scale(flags)
    settings, device = prepare_device(flags)
    images, labels, start_input = make_input(flags)
    model = ResNet50(flags.seed)
    loss = model.loss(images, labels)
    optimizer = make_optimizer(resnet50.learning_rate(log.global_batch), loss_scale)
    update = optimizer.minimize(loss + model.decay(), var_list=list(model.weights.values()))
    iterate = tf.group(update, *tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    with tf.control_dependencies([iterate]):
        loss = tf.identity(loss)  # fetching it waits for the whole iteration
    with tf.Session(config=settings) as session:
        session.run(tf.global_variables_initializer())
        start_input(session)
        log.configured(
            parameters=model.parameters,
            framework=f"tensorflow {tf.__version__}",
            versions=dict(versions(), precision=precision(loss_scale)),
            devices=hvd.allgather_object(device, session),
        )
        iterate, iterate_for_loss = map(session.make_callable, (iterate, loss))
        for iteration in range(1, flags.iterations + 1):
            if log.prints(iteration):
                log.step(iteration, iterate_for_loss().item())
            else:
                iterate()
        digests = hvd.allgather_object(digest(session, model), session)
        log.finished(digests, hvd.allgather_object(peak_memory(flags, session), session))


def choose_loss_scale(flags):
    """What float16 gradients are multiplied by: a number or "dynamic"; None in float32.

    float16 does not train without a loss scale: left out, it is the static one.
    """
    gpu_amp = flags.device == "cuda" and flags.precision == "amp"
    if flags.loss_scale != "none" and not gpu_amp:
        raise steplog.Refused("--loss-scale is for float16, which needs --device cuda and amp")
    if flags.precision == "amp" and not gpu_amp:
        raise steplog.Refused("TensorFlow 1.15 has no amp on a cpu; allowed: fp32")
    return LOSS_SCALES.get(flags.loss_scale, resnet50.STATIC_LOSS_SCALE) if gpu_amp else None


def prepare_device(flags):
    """This process's device, ready, and connected to the other ranks'.

    Returns:
        The session's settings, and the device's name.
    """
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.enable_resource_variables()
    settings = tf.ConfigProto()
    if flags.device == "cpu":
        if flags.compile or flags.dali:
            raise steplog.Refused("--compile and --dali need --device cuda")
        steplog.keep_to_own_cores(RANK, flags.threads)
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
    hvd.init()
    return settings, device


def gpu_name(settings):
    """The name of the GPU that a session with these settings would have."""
    for device in device_lib.list_local_devices(settings):
        if device.device_type == "GPU":
            return re.search("name: ([^,]*)", device.physical_device_desc).group(1)
    raise steplog.Refused(
        f"TensorFlow sees no GPU for local rank {LOCAL_RANK}; allowed: a build for GPUs, such as the image of "
        "envs/ngc-tensorflow1.image.yaml, on GPUs"
    )


def make_input(flags):
    """The next batch: uint8 images [N, H, W, 3] and labels [N], and what a session starts it with.

    Raises:
        Refused: there is no such data.
    """
    if flags.dali and flags.input != "synthetic":
        return dali_input(flags)
    feed = {}
    if flags.input == "synthetic":
        arrays = resnet50.synthetic_batch(flags, RANK)
        # Fed, for a graph cannot hold 2 GB.
        feed = {tf.placeholder(array.dtype, array.shape): array for array in arrays}
        dataset = tf.data.Dataset.from_tensors(tuple(feed)).repeat()
    else:
        dataset = on_threads(batches(flags, RANK, WORLD_SIZE), flags.threads)
    if flags.device == "cuda":
        dataset = dataset.apply(tf.data.experimental.prefetch_to_device("/gpu:0"))
    iterator = tf.data.make_initializable_iterator(dataset)
    images, labels = iterator.get_next()
    return images, labels, lambda session: session.run(iterator.initializer, feed)


def dali_input(flags):
    """make_input's answer where DALI decodes on the GPU."""
    import nvidia.dali.plugin.tf as dali_tf  # noqa: PLC0415 - only the image has it
    from dali_input import build_pipeline  # noqa: PLC0415

    size = flags.image_size
    with tf.device("/gpu:0"):
        images, labels = dali_tf.DALIIterator()(
            pipeline=build_pipeline(flags, RANK, WORLD_SIZE, LOCAL_RANK),
            shapes=[(flags.batch_size, size, size, 3), (flags.batch_size, 1)],
            dtypes=[tf.uint8, tf.int64],
            device_id=LOCAL_RANK,
        )
    return images, labels[:, 0], lambda session: None


def make_optimizer(learning_rate, loss_scale):
    """SGD on gradients that Horovod averages over the ranks, in mixed precision if scaled."""
    optimizer = tf.train.MomentumOptimizer(learning_rate, resnet50.MOMENTUM)
    if loss_scale is not None:
        optimizer = tf.train.experimental.enable_mixed_precision_graph_rewrite(
            optimizer, loss_scale
        )
    return hvd.DistributedOptimizer(optimizer)


def precision(loss_scale):
    """What convolutions compute in, and the loss scale."""
    return "float32" if loss_scale is None else f"float16, loss scale {loss_scale}"


def digest(session, model):
    """A short digest of all weights."""
    return resnet50.digest(session.run(list(model.weights.values())))


def peak_memory(flags, session):
    """Bytes: the most that TensorFlow took of a GPU, or that this process took of the memory."""
    if flags.device == "cuda":
        with tf.device("/gpu:0"):
            return session.run(tensorflow.contrib.memory_stats.MaxBytesInUse()).item()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def versions():
    return {
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "horovod": horovod.__version__,
    }


if __name__ == "__main__":
    main()
