"""Batches for MXNet, on the device that trains.

Images lie in its layout. Labels and the like are float32, as MXNet's own reader gives them: on a
CPU, AMP takes no int64.
"""

import ctypes
import itertools
from pathlib import Path

import mxnet as mx
from mxnet.base import _LIB, check_call

from trainers.contract.steplog import Refused
from trainers.contract.weights import synthetic_batch
from trainers.frameworks.mxnet.images import axes_from, layout_on
from trainers.inputs.images import AREA, ASPECT


def synthetic_batches(recipe, flags, rank, device):
    """The rank's synthetic batch, again and again: a list of arrays on the device."""

    def placed(array):
        if array.ndim == 4:  # images, [N, H, W, 3]
            array = array.transpose(axes_from("NHWC", device))
        return mx.nd.array(array, device, "float32" if array.dtype == "int64" else array.dtype)

    return itertools.repeat([placed(array) for array in synthetic_batch(recipe, flags, rank)])


def record_images(flags, rank, world_size, device):
    """Endless batches of uint8 images and float32 labels [N], read and decoded by MXNet itself.

    Raises:
        Refused: there are no parts in the folder.
    """
    parts = sorted(Path(flags.data).glob("part-*.rec"))
    if not parts:
        raise Refused(f"{flags.data}: holds no parts; allowed: a converted data set")
    size = flags.shape["image_size"]
    records = mx.io.ImageRecordIter(
        path_imgrec=";".join(map(str, parts)),
        path_imgidx=str(parts[0].with_name("all.idx")),
        num_parts=world_size,
        part_index=rank,
        shuffle=True,
        seed=flags.seed,
        seed_aug=flags.seed + rank,
        batch_size=flags.batch_size,
        data_shape=(3, size, size),
        dtype="uint8",
        random_resized_crop=True,
        min_random_area=AREA[0],
        max_random_area=AREA[1],
        min_aspect_ratio=ASPECT[0],
        max_aspect_ratio=ASPECT[1],
        rand_mirror=True,
        preprocess_threads=flags.threads,
        verbose=False,
    )
    return _read_again_and_again(records, device)


def _read_again_and_again(records, device):
    """Batches of a reader on the device; MXNet copies them while it trains."""
    while True:
        for batch in records:
            (images,), (labels,) = batch.data, batch.label
            yield _rearranged(images.as_in_context(device), "NCHW"), labels.as_in_context(device)
        records.reset()


def dali_images(flags, rank, world_size, device):
    """Endless batches of uint8 images and float32 labels [N], decoded by DALI."""
    from trainers.inputs.dali import build_pipeline  # noqa: PLC0415

    gpu = device.device_id if device.device_type == "gpu" else None
    return _decoded(build_pipeline(flags, rank, world_size, gpu), device)


def _decoded(pipeline, device):
    while True:
        images, labels = pipeline.run()
        labels = _copied(labels, device, "int64").astype("float32").reshape(-1)
        yield _rearranged(_copied(images, device, "uint8"), "NHWC"), labels


def _copied(batch, device, dtype):
    """A batch of DALI's as an array of MXNet's; DALI fills its own memory again at its next run."""
    array = mx.nd.empty(batch.as_tensor().shape(), device, dtype)
    address = ctypes.c_void_p()
    check_call(_LIB.MXNDArrayGetData(array.handle, ctypes.byref(address)))
    batch.copy_to_external(address)
    return array


def _rearranged(images, layout):
    """Images on a device, from a reader's layout to the device's."""
    if layout == layout_on(images.context):
        return images
    return mx.nd.transpose(images, axes_from(layout, images.context))
