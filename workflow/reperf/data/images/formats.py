"""The record formats of images, by their names in the configuration.

TFRecord holds tf.train.Example messages with the keys of the usual ImageNet conversion, OFRecord
OneFlow's messages with the keys that its ImageNet conversion writes: the same ones, but for their
prefix. Readers of OFRecord need `encoded` and `class/label`; the text and the boxes that OneFlow's
own tool takes from other files are left out. RecordIO holds MXNet's image records, as im2rec writes
them.

Sources: tensorflow/core/example/feature.proto and oneflow/core/record/record.proto (fields), the
ImageNet conversion of tensorflow/models and OneFlow-Benchmark's imagenet_ofrecord.py (keys),
dmlc-core's recordio.h and recordio.cc (framing), MXNet's image_recordio.h (header), tools/im2rec.py
(list and index).
"""

from collections.abc import Sequence
from pathlib import Path
from struct import pack

import numpy as np

from reperf.data.conversion import Format
from reperf.data.images.image import Image
from reperf.data.kind import Part
from reperf.data.wire import (
    BYTES_LIST,
    bytes_entry,
    entry_head,
    field_head,
    index_line,
    integer_entry,
    ofrecord,
    tfrecord,
)
from reperf.files import whole_file

INT64_LIST_OF_TENSORFLOW = 3
INT32_LIST_OF_ONEFLOW = 4
MAGIC = 0xCED7230A
LONGEST = (1 << 29) - 1  # bytes of content
WHOLE, FIRST, MIDDLE, LAST = 0, 1, 2, 3


def _as_example(image: Image) -> list[bytes]:
    """The pieces of an image's record. Labels count from 1, because 0 is the background."""
    before, after = _features(image, b"image/", INT64_LIST_OF_TENSORFLOW, image.label + 1)
    size = len(before) + len(image.data) + len(after)
    return tfrecord(field_head(1, size) + before, image.data, after)


def _as_ofrecord(image: Image) -> list[bytes]:
    """The pieces of an image's record. Labels count from 0."""
    number = bytes_entry(b"data_id", str(image.index).encode())
    before, after = _features(image, b"", INT32_LIST_OF_ONEFLOW, image.label, number)
    return ofrecord(before, image.data, after)


def _features(
    image: Image, prefix: bytes, integers: int, label: int, number: bytes = b""
) -> tuple[bytes, bytes]:
    """What precedes and what follows the JPEG in an image's map of features.

    `prefix` begins the keys; `integers` is the field number in Feature of whole numbers.
    """
    before = (
        integer_entry(prefix + b"channels", integers, 3)
        + integer_entry(prefix + b"class/label", integers, label)
        + bytes_entry(prefix + b"class/synset", image.synset.encode())
        + bytes_entry(prefix + b"colorspace", b"RGB")
        + number
        + entry_head(prefix + b"encoded", BYTES_LIST, len(image.data))
    )
    after = (
        bytes_entry(prefix + b"filename", image.name.encode())
        + bytes_entry(prefix + b"format", b"JPEG")
        + integer_entry(prefix + b"height", integers, image.height)
        + integer_entry(prefix + b"width", integers, image.width)
    )
    return before, after


def _as_recordio(image: Image) -> list[bytes]:
    """The pieces of an image's RecordIO record. Labels count from 0.

    A record is a magic word, a word that holds a flag (3 bits) and a length (29 bits), the content,
    and zeros up to a multiple of four bytes. The content is MXNet's image header (flag 0, the label
    as a float, the image's id, 0) and the JPEG. Where the content holds the magic word at a
    multiple of four bytes, it is cut there and the word left out: flags mark the first (1), middle
    (2), last (3) piece.
    """
    header = pack("<IfQQ", 0, image.label, image.index, 0)
    size = len(header) + len(image.data)
    if size > LONGEST:
        raise ValueError(f"{len(image.data)} bytes; allowed in RecordIO: {LONGEST - len(header)}")
    first, *others = _between_magics(image.data)
    flags = [FIRST, *[MIDDLE] * (len(others) - 1), LAST] if others else [WHOLE]
    record = [_head(flags[0], len(header) + len(first)) + header, first]
    for flag, piece in zip(flags[1:], others, strict=True):
        record += [_head(flag, len(piece)), piece]
    return [*record, bytes(-size % 4)]


def _between_magics(data: bytes) -> list[bytes]:
    """The data, cut at magic words that lie at a multiple of four bytes, without those words."""
    words = np.frombuffer(data, "<u4", len(data) // 4)
    cuts = np.flatnonzero(words == MAGIC) * 4
    if not cuts.size:
        return [data]
    starts, ends = [0, *cuts + 4], [*cuts, len(data)]
    return [data[start:end] for start, end in zip(starts, ends, strict=True)]


def _head(flag: int, size: int) -> bytes:
    return pack("<II", MAGIC, flag << 29 | size)


def _join_indices(folder: Path, parts: Sequence[Part]) -> None:
    """Write all.idx: where the records begin in all parts, concatenated.

    Readers of many parts take one index: MXNet's ImageRecordIter and DALI's readers.mxnet.
    """
    offset = 0
    with whole_file(folder / "all.idx") as joint:
        for part in parts:
            with (folder / part.name).with_suffix(".idx").open(encoding="utf-8") as lines:
                for line in lines:
                    key, start = line.split("\t")
                    joint.write(f"{key}\t{offset + int(start)}\n")
            offset += part.bytes


FORMATS: dict[str, Format[Image]] = {
    "tfrecord": Format(_as_example, sidecars={".idx": index_line}),
    "ofrecord": Format(_as_ofrecord),
    "recordio": Format(
        _as_recordio,
        suffix=".rec",
        sidecars={
            ".idx": lambda image, at, _: f"{image.index}\t{at}\n",
            # Its id, its label and its path under train/.
            ".lst": lambda one, *_: f"{one.index}\t{one.label:f}\t{one.synset}/{one.name}\n",
        },
        finish=_join_indices,
    ),
}
