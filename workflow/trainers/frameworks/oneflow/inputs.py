"""Batches for OneFlow's graphs: modules whose call gives all ranks' batch, split over the ranks.

Each gives uint8 images [N, H, W, 3] and labels [N], and, where images are to be mirrored, which.
"""

from pathlib import Path

import oneflow as flow
import resnet50
from oneflow import nn
from steplog import Refused

SPLIT = flow.sbp.split(0)


def input_batches(flags, rank, world_size):
    """The module that gives the batches that the flags ask for."""
    if flags.input == "synthetic":
        return FixedBatch(flags, rank)
    if flags.input == "ofrecord":
        return Records(flags, world_size)
    raise Refused(f"OneFlow does not read --input {flags.input}; allowed: ofrecord, synthetic")


class FixedBatch(nn.Module):
    """The same batch again and again: nothing is read."""

    def __init__(self, flags, rank):
        super().__init__()
        images, labels = map(flow.tensor, resnet50.synthetic_batch(flags, rank))
        everywhere = flow.placement.all(flags.device)
        self.register_buffer("images", images.to_global(everywhere, SPLIT))
        self.register_buffer("labels", labels.to_global(everywhere, SPLIT))

    def forward(self):
        return self.images, self.labels


class Records(nn.Module):
    """Random parts of the images in OFRecord parts, of which each rank reads its share.

    Raises:
        Refused: the parts cannot be shared evenly.
    """

    def __init__(self, flags, world_size):
        super().__init__()
        parts = [path for path in Path(flags.data).glob("part-*") if not path.suffix]
        if not parts or len(parts) % world_size:
            raise Refused(
                f"{flags.data}: {len(parts)} parts for {world_size} ranks; "
                "allowed: a multiple of them"
            )
        self.device = flags.device
        size, seed = flags.image_size, flags.seed
        everywhere = {
            "batch_size": flags.batch_size * world_size,
            "random_seed": seed,
            "placement": flow.placement.all("cpu"),
            "sbp": SPLIT,
        }
        # Parts are not shuffled after an epoch: that would deal them out to the ranks anew.
        self.read = nn.OFRecordReader(
            flags.data,
            data_part_num=len(parts),
            part_name_suffix_length=5,
            random_shuffle=True,
            **everywhere,
        )
        self.label = nn.OFRecordRawDecoder("class/label", shape=(), dtype=flow.int32)
        self.mirrored = nn.CoinFlip(**everywhere)
        if flags.device == "cpu":
            self.decode = nn.OFRecordImageDecoderRandomCrop(
                "encoded",
                color_space="RGB",
                random_seed=seed,
                random_area=resnet50.AREA,
                random_aspect_ratio=resnet50.ASPECT,
            )
            self.resize = nn.image.Resize(target_size=(size, size))
        else:
            self.jpeg = nn.OFRecordBytesDecoder("encoded")
            self.decode_on_gpu = nn.OFRecordImageGpuDecoderRandomCropResize(
                target_width=size,
                target_height=size,
                seed=seed,
                random_area=resnet50.AREA,
                random_aspect_ratio=resnet50.ASPECT,
                num_workers=flags.threads,
            )

    def forward(self):
        records = self.read()
        if self.device == "cpu":
            images, _, _ = self.resize(self.decode(records))
        else:
            images = self.decode_on_gpu(self.jpeg(records))
        return images, self.label(records).to(self.device), self.mirrored().to(self.device)
