"""Train with MXNet: Gluon, Horovod, and MXNet's own reader of its own records."""

from pathlib import Path

import mxnet as mx
import resnet50
from gluon_training import run, synthetic_batches
from steplog import Refused


def input_batches(flags, rank, world_size, device):
    """Endless batches of uint8 images [N, 3, H, W] and float32 labels [N], on the device.

    Raises:
        Refused: there are no parts in the folder.
    """
    if flags.input == "synthetic":
        return synthetic_batches(flags, rank, device, "NCHW")
    parts = sorted(Path(flags.data).glob("part-*.rec"))
    if not parts:
        raise Refused(f"{flags.data}: holds no parts; allowed: a converted data set")
    records = mx.io.ImageRecordIter(
        path_imgrec=";".join(map(str, parts)),
        path_imgidx=str(parts[0].with_name("all.idx")),
        num_parts=world_size,
        part_index=rank,
        shuffle=True,
        seed=flags.seed,
        seed_aug=flags.seed + rank,
        batch_size=flags.batch_size,
        data_shape=(3, flags.image_size, flags.image_size),
        dtype="uint8",
        random_resized_crop=True,
        min_random_area=resnet50.AREA[0],
        max_random_area=resnet50.AREA[1],
        min_aspect_ratio=resnet50.ASPECT[0],
        max_aspect_ratio=resnet50.ASPECT[1],
        rand_mirror=True,
        preprocess_threads=flags.threads,
        verbose=False,
    )
    return on_device(records, device)


def on_device(records, device):
    """Batches of an endless reader on the device; MXNet copies them while it trains."""
    while True:
        for batch in records:
            yield [array.as_in_context(device) for array in (*batch.data, *batch.label)]
        records.reset()


if __name__ == "__main__":
    run(input_batches, "NCHW")
