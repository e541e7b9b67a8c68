"""Training images that NVIDIA DALI reads and decodes, for every framework that uses it."""

from pathlib import Path

from nvidia.dali import fn, pipeline_def, tfrecord, types

from trainers.contract.steplog import Refused
from trainers.inputs.images import AREA, ASPECT, IMAGE, LABEL

PADDING = {"device_memory_padding": 211025920, "host_memory_padding": 140544512}
"""Bytes of a GPU decoder's buffers, enough for ImageNet's largest image: else they would grow.

Source: NVIDIA DeepLearningExamples, MxNet/Classification/RN50v1.5/dali.py."""


def build_pipeline(flags, rank, world_size, gpu=None):
    """A rank's endless pipeline: a run gives uint8 images [N, H, W, 3] and int64 labels [N, 1]."""
    parts = sorted(path for path in Path(flags.data).glob("part-*") if path.suffix in ("", ".rec"))
    if not parts:
        raise Refused(f"{flags.data}: holds no parts; allowed: a converted data set")

    size, how = flags.shape["image_size"], {"num_threads": flags.loader_threads, "device_id": gpu}
    on = {"device": "cpu"} if gpu is None else {"device": "mixed", **PADDING}
    crop = {"output_type": types.RGB, "random_area": AREA, "random_aspect_ratio": ASPECT}
    scale = {"interp_type": types.INTERP_LINEAR, "antialias": False}

    @pipeline_def(
        batch_size=flags.batch_size, seed=flags.seed + rank, prefetch_queue_depth=2, **how
    )
    def pipeline():
        jpegs, labels = READERS[flags.input](parts, rank, world_size)
        images = fn.decoders.image_random_crop(jpegs, **on, **crop)
        images = fn.resize(images, resize_x=size, resize_y=size, **scale)
        images = fn.flip(images, horizontal=fn.random.coin_flip())
        return images, labels if gpu is None else labels.gpu()

    built = pipeline()
    built.build()
    return built


def _tfrecord(parts, rank, world_size):
    paths = {"path": list(map(str, parts)), "index_path": [f"{part}.idx" for part in parts]}
    image = tfrecord.FixedLenFeature((), tfrecord.string, "")
    features = {IMAGE: image, LABEL: tfrecord.FixedLenFeature([1], tfrecord.int64, -1)}
    record = fn.readers.tfrecord(features=features, **paths, **_share(rank, world_size))
    return record[IMAGE], record[LABEL] - 1  # in ImageNet's TFRecords 0 is the background


def _recordio(parts, rank, world_size):
    paths = {"path": list(map(str, parts)), "index_path": [str(parts[0].with_name("all.idx"))]}
    jpegs, labels = fn.readers.mxnet(**paths, **_share(rank, world_size))
    return jpegs, fn.cast(labels, dtype=types.INT64)


def _share(rank, world_size):
    return {
        "shard_id": rank,
        "num_shards": world_size,
        "stick_to_shard": True,  # else each epoch reads another rank's share
        "random_shuffle": True,
        "initial_fill": 1024,
        "name": "records",
    }


READERS = {"tfrecord": _tfrecord, "recordio": _recordio}
