"""Batches for OneFlow's graphs: modules that return the batch of all ranks, split over them."""

import os

import numpy as np
import oneflow as flow
from oneflow import nn

from trainers.contract.steplog import Refused
from trainers.contract.weights import synthetic_batch
from trainers.inputs.images import AREA, ASPECT
from trainers.inputs.parts import even_parts
from trainers.inputs.sentences import NAMES
from trainers.recipes import bert

CHANNELS_LAST = os.environ.get("ONEFLOW_ENABLE_NHWC") == "1"  # OneFlow's layers read it
SPLIT = flow.sbp.split(0)
GPU_DECODERS = 4
"""The most threads of the decoder on a GPU, each of which takes 201 MB of its memory."""


class FixedBatch(nn.Module):
    """The ranks' synthetic batches, again and again: nothing is read."""

    def __init__(self, recipe, flags, rank):
        super().__init__()
        batch = fixed_batch(recipe, flags, rank, flow.placement.all(flags.device))
        self.names = [f"array{number}" for number in range(len(batch))]
        for name, tensor in zip(self.names, batch):
            self.register_buffer(name, tensor)

    def forward(self):
        return tuple(getattr(self, name) for name in self.names)


def fixed_batch(recipe, flags, rank, placement):
    """The synthetic batches of a placement's ranks as one, of global tensors that it splits."""
    batch = synthetic_batch(recipe, flags, rank)
    return [flow.tensor(array).to_global(placement, SPLIT) for array in batch]


class RecordImages(nn.Module):
    """Random parts of the images in OFRecord parts, of which each reader, all ranks or those that
    are named, has its share.

    A call gives uint8 images [N, H, W, 3], labels [N], and which images are to be mirrored, [N].
    """

    def __init__(self, flags, rank, readers, ranks=None):
        super().__init__()
        self.device = flags.device
        size, seed = flags.shape["image_size"], flags.seed
        crop = {"random_area": AREA, "random_aspect_ratio": ASPECT}
        where = flow.placement("cpu", ranks) if ranks else flow.placement.all("cpu")
        everywhere = {"random_seed": seed, "placement": where}
        # Parts are not shuffled after each epoch: that would deal them out to the ranks again.
        self.read = _reader(flags, readers, random_shuffle=True, **everywhere)
        self.label = nn.OFRecordRawDecoder("class/label", shape=(), dtype=flow.int32)
        self.mirrored = nn.CoinFlip(batch_size=flags.batch_size * readers, sbp=SPLIT, **everywhere)
        if flags.device == "cpu":
            self.decode = nn.OFRecordImageDecoderRandomCrop(
                "encoded", color_space="RGB", random_seed=seed, **crop
            )
            self.resize = nn.image.Resize(target_size=(size, size))
        else:
            self.jpeg = nn.OFRecordBytesDecoder("encoded")
            self.decode_on_gpu = nn.OFRecordImageGpuDecoderRandomCropResize(
                target_width=size,
                target_height=size,
                seed=seed,
                num_workers=min(flags.loader_threads, GPU_DECODERS),
                **crop,
            )

    def forward(self):
        records = self.read()
        if self.device == "cpu":
            images, _, _ = self.resize(self.decode(records))
        else:
            images = self.decode_on_gpu(self.jpeg(records))
        return images, self.label(records).to(self.device), self.mirrored().to(self.device)


class RecordSentences(nn.Module):
    """Pairs of sentences in OFRecord parts, in the order in which they were written.

    A call gives the batch as trainers.inputs.sentences does, its whole numbers int32. In each graph
    that calls this a rank reads its share from the first batch on.
    """

    def __init__(self, flags, rank, world_size):
        super().__init__()
        self.device = flags.device
        self.read = _reader(flags, world_size, placement=flow.placement.all("cpu"))
        self.decoders = nn.ModuleList()
        one = bert.synthetic_batch(flags.shape, 1, np.random.RandomState(0))
        for name, array in zip(NAMES, one):
            kind = flow.float32 if array.dtype == np.float32 else flow.int32
            self.decoders.append(nn.OFRecordRawDecoder(name, shape=array.shape[1:], dtype=kind))

    def forward(self):
        records = self.read()
        return [decode(records).to(self.device) for decode in self.decoders]


def _reader(flags, readers, **how):
    if flags.input != "ofrecord":
        raise Refused(f"OneFlow does not read --input {flags.input}; allowed: ofrecord, synthetic")
    how.update(data_part_num=len(even_parts(flags.data, readers)), part_name_suffix_length=5)
    return nn.OFRecordReader(flags.data, batch_size=flags.batch_size * readers, sbp=SPLIT, **how)
