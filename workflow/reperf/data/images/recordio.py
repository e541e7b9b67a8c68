"""RecordIO: MXNet's image records, as im2rec writes them.

A record is a magic word, a word that holds a flag (3 bits) and a length (29 bits), the content, and
zeros up to a multiple of four bytes. The content is MXNet's image header (flag 0, the label as a
float, the image's id, 0) and the JPEG. Where the content holds the magic word at a multiple of four
bytes, it is cut there and the word left out: flags mark the first (1), middle (2), last (3) piece.

Sources: dmlc-core's recordio.h and recordio.cc (framing), MXNet's image_recordio.h (header),
tools/im2rec.py (list and index).
"""

from collections.abc import Sequence
from pathlib import Path
from struct import pack

import numpy as np

from reperf.data.images.image import Image
from reperf.data.manifest import Written
from reperf.data.part import Format
from reperf.files import whole_file

MAGIC = 0xCED7230A
LONGEST = (1 << 29) - 1  # bytes of content
WHOLE, FIRST, MIDDLE, LAST = 0, 1, 2, 3


def frame(image: Image) -> list[bytes]:
    """The pieces of an image's record. Labels count from 0.

    Raises:
        ValueError: the image is too large for a record.
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


def index_line(image: Image, offset: int, _: int) -> str:
    """A line of a part's .idx file: the image's id and where its record begins."""
    return f"{image.index}\t{offset}\n"


def list_line(image: Image, _: int, __: int) -> str:
    """A line of a part's .lst file: the image's id, label and path under train/."""
    return f"{image.index}\t{image.label:f}\t{image.synset}/{image.name}\n"


def join_indices(folder: Path, parts: Sequence[Written]) -> None:
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


RECORDIO = Format(
    frame,
    suffix=".rec",
    sidecars={".idx": index_line, ".lst": list_line},
    finish=join_indices,
)
