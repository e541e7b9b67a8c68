"""Batches for PaddlePaddle, read and copied to the device while it trains."""

import itertools

import numpy as np
import paddle
from paddle.utils import dlpack

from trainers.contract.steplog import Refused


def on_device(batches):
    """The batches as tensors on the device; a thread of Paddle's copies there what is not yet."""
    first = next(batches)
    batches = itertools.chain([first], batches)
    if all(isinstance(one, paddle.Tensor) for one in first):
        yield from batches
    source = _Source(batches)
    yield from paddle.io.DataLoader(source, batch_size=None)
    raise source.error


def images(flags, rank, world_size, gpu=None):
    """Endless batches of uint8 images [N, H, W, 3] and int64 labels [N]."""
    if flags.dali:
        return _dali_batches(flags, rank, world_size, gpu)
    # OpenCV and DALI bring their own libraries: only the one needed is loaded.
    from trainers.inputs.jpegs import SOURCES, batches  # noqa: PLC0415

    if flags.input not in SOURCES:
        raise Refused(f"no --input {flags.input}; allowed: {', '.join(SOURCES)}, synthetic")
    return batches(flags, rank, world_size)


def _dali_batches(flags, rank, world_size, gpu):
    if flags.input != "tfrecord":
        raise Refused(f"no --input {flags.input} with --dali; allowed: tfrecord, synthetic")
    from trainers.inputs.dali import build_pipeline  # noqa: PLC0415

    pipeline = build_pipeline(flags, rank, world_size, gpu)
    if gpu is None:  # DALI's plugin for Paddle needs GPUs
        decoded = ([part.as_array() for part in pipeline.run()] for _ in itertools.count())
        return ((images, labels[:, 0]) for images, labels in decoded)
    from nvidia.dali.plugin.paddle import DALIGenericIterator  # noqa: PLC0415

    decoded = DALIGenericIterator([pipeline], ["images", "labels"])
    return (
        (paddle.to_tensor(one["images"]), paddle.to_tensor(one["labels"])[:, 0])
        for (one,) in decoded
    )


class _Source(paddle.io.IterableDataset):
    """Batches that pass on an error, which the thread that reads them would only print."""

    def __init__(self, batches):
        super().__init__()
        self.batches, self.error = batches, None

    def __iter__(self):
        try:
            for batch in self.batches:
                # An array Paddle would copy, and hold Python's lock, which loader threads need.
                yield [dlpack.from_dlpack(np.ascontiguousarray(one).__dlpack__()) for one in batch]
        except Exception as error:
            self.error = error
