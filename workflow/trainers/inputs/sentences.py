"""Pairs of sentences for one rank, out of TFRecords with the keys of google-research/bert.

Numpy decodes hundreds of records at once: one by one would take a core for a large GPU.
"""

import numpy as np

from trainers.contract.steplog import Refused
from trainers.inputs.parts import AROUND, BEFORE, fields, neighbouring_parts, open_part

NAMES = (
    "input_ids",
    "input_mask",
    "segment_ids",
    "masked_lm_positions",
    "masked_lm_ids",
    "masked_lm_weights",
    "next_sentence_labels",
)
"""The arrays of a batch, in its order: the keys of a record."""
WRITTEN = sorted(NAMES)
"""They are written in this order by reperf, and by whatever orders the keys of a map."""

FLOAT_LIST, INT64_LIST = 2, 3  # fields of Feature in tensorflow/core/example/feature.proto
BLOCK = 256  # records that are decoded at once
LONGEST = 5  # bytes of a number


def sentence_batches(flags, rank, world_size, device):
    return iter(Sentences(flags.data, flags.shape, flags.batch_size, rank, world_size))


class Sentences:
    """Endless batches of a rank's share of the records, in the order in which they were written.

    A rank reads its own parts, one after the other, and then again from the first; a batch that
    begins at their end goes on at their beginning.

    A batch is a tuple of arrays: input_ids, input_mask and segment_ids [N, S],
    masked_lm_positions and masked_lm_ids [N, P], masked_lm_weights [N, P], next_sentence_labels
    [N]; the weights are float32, all others int64.
    """

    def __init__(self, folder, shape, batch_size, rank, world_size):
        self._batch_size = batch_size
        self._lengths, self._limits = _expected(shape)
        paths = neighbouring_parts(folder, rank, world_size)
        self._parts = [(path, *open_part(path)) for path in paths]
        if not any(len(places) for _, _, places in self._parts):
            raise Refused("%s: rank %d has no records; allowed: one or more" % (folder, rank))

    def __iter__(self):
        pieces, missing = [], self._batch_size
        for block in self._blocks():
            at, end = 0, len(block[0])
            while at < end:
                taken = min(missing, end - at)
                pieces.append([array[at : at + taken] for array in block])
                at, missing = at + taken, missing - taken
                if not missing:
                    one = len(pieces) == 1
                    yield tuple(pieces[0] if one else map(np.concatenate, zip(*pieces)))
                    pieces, missing = [], self._batch_size

    def _blocks(self):
        size = max(BLOCK, self._batch_size)
        while True:
            for path, content, places in self._parts:
                all_bytes = np.frombuffer(content, np.uint8)
                for first in range(0, len(places), size):
                    yield self._decoded(path, all_bytes, places[first : first + size])

    def _decoded(self, path, content, places):
        offsets, sizes = places.T
        messages = content[np.clip(offsets[:, None], 0, len(content) - 8) + np.arange(8)]
        whole = messages.view("<i8")[:, 0] + AROUND == sizes
        if not whole.all():
            at = np.argmin(whole)
            what = f"{path} at byte {offsets[at]}: no record of {sizes[at]} bytes"
            raise Refused(f"{what}; allowed: TFRecord")
        begins, ends = offsets + BEFORE, offsets + sizes - (AROUND - BEFORE)
        try:
            lists = _find_as_written(content, begins, ends)
        except _OtherOrder:
            lists = _find_by_name(path, content, begins, ends)
        batch = []
        for name in NAMES:
            decode = _floats if name == "masked_lm_weights" else _integers
            array, count = decode(*lists[name], self._lengths[name]), self._lengths[name]
            if array is None:
                raise Refused(_why_not(path, offsets, name, lists[name], count))
            limit = self._limits.get(name)
            if limit is not None and array.max() >= limit:
                what = f"{path} at byte {offsets[np.argmax(array.max(axis=1))]}: {name}"
                raise Refused(f"{what}: got {array.max()}; allowed: below {limit}")
            batch.append(array)
        batch[-1] = batch[-1][:, 0]
        return batch


def _expected(shape):
    """How many numbers each list has, and what its numbers are below."""
    tokens, predictions = shape["sequence_length"], shape["max_predictions"]
    lengths = dict.fromkeys(NAMES, tokens)
    lengths.update(dict.fromkeys(NAMES[3:6], predictions), next_sentence_labels=1)
    limits = dict.fromkeys(NAMES, 2)
    limits.update(dict.fromkeys(("input_ids", "masked_lm_ids"), shape["vocabulary"]))
    limits["masked_lm_positions"] = tokens
    del limits["masked_lm_weights"]
    return lengths, limits


class _OtherOrder(Exception):
    """The messages are not as reperf writes them."""


def _find_as_written(content, begins, ends):
    """Where the lists lie in messages whose keys are in order: name -> bytes, starts and sizes."""
    reader = _Reader(content, begins)
    reader.skip_head(b"\x0a")  # of features
    lists = {}
    for name in WRITTEN:
        kind = FLOAT_LIST if name == "masked_lm_weights" else INT64_LIST
        reader.skip_head(b"\x0a")  # of an entry of the map
        reader.skip(b"\x0a" + bytes([len(name)]) + name.encode() + b"\x12")
        reader.skip_number()  # the feature's size
        reader.skip_head(bytes([kind << 3 | 2]))
        sizes = reader.skip_head(b"\x0a")
        lists[name] = content, reader.at, sizes
        reader.at = reader.at + sizes
    if (reader.at != ends).any():
        raise _OtherOrder
    return lists


class _Reader:
    """Reads the same kind of field in many messages at once; `at` is where each one is."""

    def __init__(self, content, at):
        self._content = content
        self.at = at

    def skip(self, expected):
        found = self._bytes(np.arange(len(expected)))
        if (found != np.frombuffer(expected, np.uint8)).any():
            raise _OtherOrder
        self.at = self.at + len(expected)

    def skip_head(self, tag):
        """Skip a tag and a size; returns the sizes."""
        self.skip(tag)
        return self.skip_number()

    def skip_number(self):
        first, second, third = self._bytes(np.arange(3)).astype(np.int64).T
        longer, longest = first >> 7, first >> 7 & second >> 7
        self.at = self.at + 1 + longer + longest
        return first & 0x7F | (second & 0x7F) * longer << 7 | (third & 0x7F) * longest << 14

    def _bytes(self, steps):
        try:
            return self._content[self.at[:, None] + steps]
        except IndexError:
            raise _OtherOrder from None


def _find_by_name(path, content, begins, ends):
    """Where the lists lie in messages whose keys may be in any order."""
    found = {name: [] for name in NAMES}
    for begin, end in zip(begins.tolist(), ends.tolist()):
        lists = _lists_of(memoryview(content[begin:end]))
        for name in NAMES:
            if lists.get(name) is None:
                what = f"{path} at byte {begin - BEFORE}: no {name}"
                raise Refused(f"{what}; allowed: an Example with {', '.join(NAMES)}")
            found[name].append(lists[name])
    lists = {}
    for name, pieces in found.items():
        sizes = np.array([len(piece) for piece in pieces])
        joined = np.frombuffer(b"".join(pieces), np.uint8)
        lists[name] = joined, np.cumsum(sizes) - sizes, sizes
    return lists


def _lists_of(message):
    """The packed lists of a tf.train.Example, by name; as far as it is one."""
    lists = {}
    try:
        for _, entries in fields(message):
            for _, entry in fields(entries):
                (_, name), (_, feature) = fields(entry)
                for _, one_list in fields(feature):
                    for _, packed in fields(one_list):
                        lists[bytes(name).decode()] = packed if len(packed) else None
    except (IndexError, TypeError, ValueError):
        pass
    return lists


def _floats(content, starts, sizes, count):
    """The numbers of packed lists, float32 [lists, count]; None unless each has `count` of them."""
    if (sizes != 4 * count).any():
        return None
    return content[starts[:, None] + np.arange(4 * count)].view("<f4")


def _integers(content, starts, sizes, count):
    """The numbers of packed lists, int64 [lists, count]; None unless each has `count` of them."""
    # A number is seven bits per byte, lowest first; a byte from 128 on is not its last.
    if (sizes == count).all():
        numbers = content[starts[:, None] + np.arange(count)]
        return numbers.astype(np.int64) if numbers.max() < 0x80 else None
    ends = np.cumsum(sizes)
    packed = content[np.arange(ends[-1]) + np.repeat(starts - (ends - sizes), sizes)]
    last = np.flatnonzero(packed < 0x80)
    if len(last) != count * len(sizes) or (last[count - 1 :: count] != ends - 1).any():
        return None
    lengths = np.diff(last, prepend=-1)
    longest = lengths.max()
    if longest > LONGEST:
        return None
    numbers = packed[last].astype(np.int64)
    for step in range(1, longest):
        longer = np.flatnonzero(lengths > step)
        numbers[longer] = numbers[longer] << 7 | packed[last[longer] - step] & 0x7F
    return numbers.reshape(-1, count)


def _why_not(path, offsets, name, found, count):
    """Which record's list has another number of numbers, or larger ones."""
    content, starts, sizes = found
    for offset, start, size in zip(offsets.tolist(), starts.tolist(), sizes.tolist()):
        one = content[start : start + size]
        numbers = size / 4 if name == "masked_lm_weights" else np.count_nonzero(one < 0x80)
        if numbers != count:
            return f"{path} at byte {offset}: {name} has {numbers:g} numbers; allowed: {count}"
    return f"{path}: {name} has numbers that are below 0 or too large; allowed: tokens"
