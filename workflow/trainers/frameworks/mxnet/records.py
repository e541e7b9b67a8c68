"""Images that MXNet's own reader takes from its own records."""

from pathlib import Path

import mxnet as mx

from trainers.contract.steplog import Refused
from trainers.frameworks.mxnet.images import rearranged
from trainers.inputs.images import AREA, ASPECT


def record_images(flags, rank, world_size, device):
    """Endless batches of uint8 images and float32 labels [N], read and decoded by MXNet itself."""
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
        **dict(zip(("min_random_area", "max_random_area"), AREA)),
        **dict(zip(("min_aspect_ratio", "max_aspect_ratio"), ASPECT)),
        rand_mirror=True,
        preprocess_threads=flags.loader_threads,
        # Else every rank's batches lie in memory that is pinned to the first GPU.
        device_id=device.device_id if device.device_type == "gpu" else -1,
        verbose=False,
    )
    return _read_again_and_again(records, device)


def _read_again_and_again(records, device):
    while True:  # MXNet copies batches while it trains
        for batch in records:
            (images,), (labels,) = batch.data, batch.label
            yield rearranged(images.as_in_context(device), "NCHW"), labels.as_in_context(device)
        records.reset()
