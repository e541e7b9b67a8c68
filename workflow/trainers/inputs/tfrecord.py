"""ImageNet's TFRecords, read without TensorFlow."""

import struct

import numpy as np

from trainers.contract.steplog import Refused
from trainers.inputs.images import IMAGE, LABEL
from trainers.inputs.parts import AROUND, BEFORE, even_parts, fields, open_part, varint

_IMAGE, _LABEL = IMAGE.encode(), LABEL.encode()


class Records:
    """This rank's share of a folder of TFRecord parts: every world-size-th part."""

    def __init__(self, folder, rank, world_size):
        parts = even_parts(folder, world_size)[rank::world_size]
        self._parts = []
        places = []
        for number, path in enumerate(parts):
            content, index = open_part(path)
            self._parts.append((path, content))
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
        if length + AROUND != size:
            raise Refused(f"{self.name(index)}: no record of {size} bytes; allowed: TFRecord")
        try:
            jpeg, label = read_example(content[offset + BEFORE : offset + BEFORE + length])
        except (IndexError, TypeError, ValueError):
            allowed = f"an Example with {IMAGE} and {LABEL}"
            raise Refused(f"{self.name(index)}: no image; allowed: {allowed}") from None
        return jpeg, label - 1  # in ImageNet's TFRecords 0 is the background


def read_example(message):
    """The JPEG and the label in a tf.train.Example; source: tensorflow/core/example/*.proto."""
    image = label = None
    for _, entries in fields(message):
        for _, entry in fields(entries):
            (_, name), (_, feature) = fields(entry)
            if name == _IMAGE:
                image = feature
            elif name == _LABEL:
                label = feature
    ((_, images),) = fields(image)
    ((_, jpeg),) = fields(images)
    ((_, labels),) = fields(label)
    ((_, label),) = fields(labels)
    return jpeg, label if isinstance(label, int) else varint(label, 0)[0]
