"""Batches for TensorFlow 2 and 1.15: TFRecords through tf.data, or through DALI."""

import numpy as np
import tensorflow as tf

from trainers.inputs.images import AREA, ASPECT, IMAGE, LABEL
from trainers.inputs.parts import even_parts

SHUFFLED = 1024  # records


def tfrecord_images(flags, rank, world_size):
    """A rank's endless tf.data.Dataset: uint8 images [N, H, W, 3] and int64 labels [N]."""
    parts = even_parts(flags.data, world_size)[rank::world_size]
    seed = flags.seed + rank
    size = flags.shape["image_size"]

    def load(record):
        kinds = {IMAGE: tf.string, LABEL: tf.int64}
        kinds = {name: tf.io.FixedLenFeature([], kind) for name, kind in kinds.items()}
        fields = tf.io.parse_single_example(record, kinds)
        image = random_crop(fields[IMAGE], size, seed)
        return image, fields[LABEL] - 1  # in ImageNet's TFRecords 0 is the background

    return (
        tf.data.TFRecordDataset(list(map(str, parts)))
        .repeat()
        .shuffle(SHUFFLED, seed)
        .map(load, flags.loader_threads)
        .batch(flags.batch_size, drop_remainder=True)
        .prefetch(2)
    )


def random_crop(jpeg, size, seed):
    """Decode a random part of an image, scaled to size x size and flipped half of the time."""
    begin, extent, _ = tf.image.sample_distorted_bounding_box(
        tf.io.extract_jpeg_shape(jpeg),
        tf.constant([[[0.0, 0.0, 1.0, 1.0]]]),
        seed=seed,
        min_object_covered=0.0,
        area_range=AREA,
        aspect_ratio_range=ASPECT,
        max_attempts=10,
    )
    # A rectangle's top and left, height and width, without the channels.
    part = tf.concat([begin[:2], extent[:2]], 0)
    image = tf.io.decode_and_crop_jpeg(jpeg, part, channels=3)
    image = tf.compat.v2.image.resize(image, [size, size])
    image = tf.image.random_flip_left_right(image, seed)
    return tf.cast(image + 0.5, tf.uint8)  # rounded


class Counter:
    """Counts batches as a recipe says; each brings its counts, for it passes no Python."""

    def __init__(self, recipe, shape):
        self._of = getattr(recipe, "counts", None)
        self.units = []  # the names of what is counted
        if self._of:
            batch = recipe.synthetic_batch(shape, 1, np.random.RandomState(0))
            self.units = list(self._of(batch))

    def with_counts(self, batch):
        """A batch of arrays, and after them its counts, int64."""
        return (*batch, *self._count(*batch))

    def _count(self, *batch):
        counts = self._of(batch) if self.units else {}
        return [np.int64(counts[unit]) for unit in self.units]

    def with_counts_of_each(self, dataset):
        """A tf.data.Dataset of batches, each as with_counts has it."""
        if not self.units:
            return dataset

        def with_counts(*batch):
            counts = tf.numpy_function(self._count, batch, [tf.int64] * len(self.units))
            for one in counts:
                one.set_shape([])
            return (*batch, *counts)

        return dataset.map(with_counts)

    def split(self, batch):
        """The batch, and its counts."""
        end = len(batch) - len(self.units)
        return batch[:end], batch[end:]

    def named(self, sums):
        """Sums of counts by their units."""
        return dict(zip(self.units, map(int, sums)))


def batches_read(work, counter, dataset):
    """Batches of a dataset as backends take them."""
    if work.dropout:  # the first batch's loss is computed before it is trained on, without that
        dataset = dataset.take(1).concatenate(dataset)
    return on_threads(counter.with_counts_of_each(dataset), work.flags.loader_threads)


def on_threads(dataset, threads):
    options = tf.data.Options()
    if hasattr(options, "threading"):
        options.threading.private_threadpool_size = threads
        options.autotune.enabled = False
    else:  # TensorFlow 1.15
        options.experimental_threading.private_threadpool_size = threads
        options.experimental_optimization.autotune = False
    return dataset.with_options(options)


def timed(next_batch):
    """The next batch, and how long the iteration that asks for it waits for it."""
    # The graph of an iteration asks for its batch itself: so the clock is read there, too.
    with tf.device("/cpu:0"):
        begun = tf.timestamp()
    with tf.control_dependencies([begun]):
        batch = next_batch()
    tensors = tf.nest.flatten(batch, expand_composites=True)  # those of all replicas
    with tf.device("/cpu:0"), tf.control_dependencies(tensors):
        come = tf.timestamp()
    # Else the clock would be read after operations of the model, which need the batch as well.
    with tf.control_dependencies([come]):
        tensors = [_kept_in_place(tensor) for tensor in tensors]
    return tf.nest.pack_sequence_as(batch, tensors, expand_composites=True), come - begun


def _kept_in_place(tensor):
    with tf.device(tensor.device):
        return tf.identity(tensor)


def dali_images(flags, rank, world_size, gpu):
    """uint8 images [N, H, W, 3] and labels [N] that DALI decodes on a GPU, for TensorFlow 1.15."""
    import nvidia.dali.plugin.tf as dali_tf  # noqa: PLC0415 - only the image has it

    from trainers.inputs.dali import build_pipeline  # noqa: PLC0415

    size = flags.shape["image_size"]
    with tf.device("/gpu:0"):
        pipeline = build_pipeline(flags, rank, world_size, gpu)
        how = {"dtypes": [tf.uint8, tf.int64], "device_id": gpu}
        shapes = [(flags.batch_size, size, size, 3), (flags.batch_size, 1)]
        images, labels = dali_tf.DALIIterator()(pipeline=pipeline, shapes=shapes, **how)
    return images, labels[:, 0]
