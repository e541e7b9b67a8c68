"""ImageNet's TFRecords, read without TensorFlow."""

import mmap
import struct
from pathlib import Path

import numpy as np

from trainers.contract.steplog import Refused
from trainers.inputs.images import IMAGE, LABEL
from trainers.inputs.parts import even_parts

_IMAGE, _LABEL = IMAGE.encode(), LABEL.encode()


class Records:
    """This rank's share of a folder of TFRecord parts: every world-size-th part.

    Beside `part-00000` is `part-00000.idx`, with a line "offset size" for each record.
    """

    def __init__(self, folder, rank, world_size):
        parts = even_parts(folder, world_size)[rank::world_size]
        self._parts = []
        places = []
        for number, path in enumerate(parts):
            with path.open("rb") as stream:
                content = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
            self._parts.append((path, content))
            index = np.array(Path(f"{path}.idx").read_text().split(), dtype=np.int64).reshape(-1, 2)
            if index.sum(axis=1).max(initial=0) > len(content):
                raise Refused(f"{path}: ends before its index; allowed: a whole part")
            places.append(np.insert(index, 0, number, axis=1))
        self._places = np.concatenate(places)  # of each record: its part, offset and size

    def __len__(self):
        return len(self._places)

    def name(self, index):
        part, offset, _ = self._places[index]
        return f"{self._parts[part][0]} at byte {offset}"

    def read(self, index):
        """A record's JPEG and its label, from 0."""
        part, offset, size = self._places[index].tolist()
        _, content = self._parts[part]
        (length,) = struct.unpack_from("<Q", content, offset)
        if length + 16 != size:  # the length (8 bytes) and two checksums (4 each) surround it
            raise Refused(f"{self.name(index)}: no record of {size} bytes; allowed: TFRecord")
        try:
            jpeg, label = read_example(content[offset + 12 : offset + 12 + length])
        except (IndexError, TypeError, ValueError):
            raise Refused(
                f"{self.name(index)}: no image; allowed: an Example with {IMAGE} and {LABEL}"
            ) from None
        return jpeg, label - 1  # in ImageNet's TFRecords 0 is the background


def read_example(message):
    """The JPEG and the label in a tf.train.Example.

    Source: tensorflow/core/example/{example,feature}.proto.
    """
    image = label = None
    for _, entries in _fields(message):
        for _, entry in _fields(entries):
            (_, name), (_, feature) = _fields(entry)
            if name == _IMAGE:
                image = feature
            elif name == _LABEL:
                label = feature
    ((_, images),) = _fields(image)
    ((_, jpeg),) = _fields(images)
    ((_, labels),) = _fields(label)
    ((_, label),) = _fields(labels)
    return jpeg, label if isinstance(label, int) else _varint(label, 0)[0]


def _fields(message):
    """The fields of a protobuf message, (number, bytes or integer), whose numbers are below 16."""
    at, end = 0, len(message)
    while at < end:
        key, value = message[at], message[at + 1]
        at += 2
        if value & 0x80:
            value, at = _varint(message, at - 1)
        if key & 7 == 2:  # the value is a length
            value, at = message[at : at + value], at + value
        yield key >> 3, value


def _varint(message, at):
    value = shift = 0
    while message[at] & 0x80:
        value |= (message[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | message[at] << shift, at + 1
