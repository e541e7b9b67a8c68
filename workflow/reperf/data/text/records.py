"""Sequences as records, with the keys of google-research/bert, which OneFlow-Benchmark has, too.

Sources: google-research/bert's create_pretraining_data.py (keys, kinds of lists),
tensorflow/core/example/feature.proto and oneflow/core/record/record.proto (fields).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reperf.data.framing import index_line, ofrecord, tfrecord
from reperf.data.part import Format
from reperf.data.protobuf import entry_head, field_head
from reperf.data.text.sequences import Sequences

FLOAT_LIST = 2
LARGEST = 1 << 21
"""Numbers are below it: three bytes of seven bits."""


@dataclass(frozen=True)
class TextFormat:
    """How sequences are written.

    Attributes:
        integers: the field number in Feature of the list that holds whole numbers.
        wrapped: whether the map is wrapped once more, in a field of the record's message.
        format: how a message is framed.
    """

    integers: int
    wrapped: bool
    format: Format[bytes]

    def messages(self, sequences: Sequences) -> Iterator[bytes]:
        """The message of each sequence, its keys in their sorted order."""
        columns = [
            (name.encode(), *_packed(array)) for name, array in sorted(sequences._asdict().items())
        ]
        for row in range(len(sequences.input_ids)):
            pieces: list[bytes] = []
            for name, packed, edges in columns:
                begin, end = edges[row], edges[row + 1]
                kind = FLOAT_LIST if name == b"masked_lm_weights" else self.integers
                pieces += _head(name, kind, end - begin), packed[begin:end]
            entries = b"".join(pieces)
            yield field_head(1, len(entries)) + entries if self.wrapped else entries


# A list's size varies by some bytes from sequence to sequence.
_head = lru_cache(maxsize=1 << 14)(entry_head)


def _packed(array: np.ndarray) -> tuple[bytes, list[int]]:
    """The bytes of packed lists, a list a row; where each list begins, and where the last ends."""
    if array.dtype.kind == "f":
        return array.astype("<f4").tobytes(), _even_edges(len(array), 4 * array.shape[1])
    largest = array.max(initial=0)
    if largest < 0x80:
        return array.astype(np.uint8).tobytes(), _even_edges(*array.shape)
    if largest >= LARGEST:
        raise ValueError(f"got {largest}; allowed: below {LARGEST}")
    groups = np.stack([array, array >> 7, array >> 14], axis=-1)
    # A group is written if there is one above it, which its first bit says, or it is not zero.
    more = np.stack([array >= 1 << 7, array >= 1 << 14, np.zeros(array.shape, bool)], axis=-1)
    written = np.concatenate([np.ones((*array.shape, 1), bool), more[..., :2]], axis=-1)
    numbers = (groups & 0x7F | more << 7).astype(np.uint8)
    edges = np.cumsum(written.sum(axis=(1, 2)))
    return numbers[written].tobytes(), [0, *edges.tolist()]


def _even_edges(rows: int, size: int) -> list[int]:
    return list(range(0, rows * size + 1, size))


TFRECORD = TextFormat(3, True, Format(tfrecord, sidecars={".idx": index_line}))
OFRECORD = TextFormat(4, False, Format(ofrecord))
FORMATS: dict[str, TextFormat] = {"tfrecord": TFRECORD, "ofrecord": OFRECORD}
