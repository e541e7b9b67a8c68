"""The parts in which a converted data set lies, dealt out to ranks, and records of TFRecords."""

import itertools
import json
import mmap
from pathlib import Path

import numpy as np

from trainers.contract.steplog import Refused


def even_parts(folder, world_size):
    """The parts of a data set, in order, if every rank can have equally many of them."""
    parts = sorted(path for path in Path(folder).glob("part-*") if not path.suffix)
    if not parts or len(parts) % world_size:
        what = f"{folder}: {len(parts)} parts for {world_size} ranks"
        raise Refused(f"{what}; allowed: a multiple of them")
    return parts


def neighbouring_parts(folder, rank, world_size):
    """A rank's share of the parts of a data set: as OneFlow's reader deals them out."""
    parts = even_parts(folder, world_size)
    share = len(parts) // world_size
    return parts[rank * share : (rank + 1) * share]


def described(folder, kind, read):
    """What `read` takes from a data set's manifest, as reperf writes it beside the parts."""
    manifest = Path(folder, "manifest.json")
    try:
        return read(json.loads(manifest.read_text(encoding="utf-8")))
    except (OSError, ValueError, LookupError, TypeError):
        what = f"{manifest}: is no manifest of {kind}"
        raise Refused(f"{what}; allowed: a folder that reperf has converted") from None


def mapped(path, number_type):
    """The ids of a part, which stay on the disk until they are asked for."""
    size = path.stat().st_size
    if size % number_type.itemsize:
        allowed = f"whole ids of {number_type.itemsize}"
        raise Refused(f"{path}: has {size} bytes; allowed: {allowed}")
    # Nothing cannot be mapped.
    return np.memmap(str(path), number_type, "r") if size else np.zeros(0, number_type)


def check_ids(ids, limit, allowed, path, first):
    """Refuse ids of a part, its `first` and those after it, that are not below the limit."""
    if ids.max() >= limit:
        at = (first + int(np.argmax(ids))) * ids.itemsize
        raise Refused("%s at byte %d: got id %d; allowed: %s" % (path, at, ids.max(), allowed))


def shuffled(count, seed, rank):
    """The numbers below `count` in a random order, endlessly: each time in another one."""
    for turn in itertools.count():
        yield from np.random.RandomState([seed, rank, turn]).permutation(count)


def open_part(path):
    """A part of TFRecords, as a memoryview, and its records' offsets and sizes, int64 [records, 2].

    `part-00000.idx` has a line "offset size" for each; without it, they are walked through.
    """
    if not path.stat().st_size:
        raise Refused("%s: an empty part; allowed: TFRecords" % path)
    with path.open("rb") as stream:
        content = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    index = path.with_name(path.name + ".idx")
    if not index.exists():
        return content, _walked(content, path)
    # Millions of lines: as Python's numbers they would take several times the memory.
    places = np.fromfile(str(index), np.int64, sep=" ")
    if len(places) % 2:
        raise Refused("%s: %d numbers; allowed: lines of offset and size" % (index, len(places)))
    places = places.reshape(-1, 2)
    if places.sum(axis=1).max(initial=0) > len(content):
        raise Refused(f"{path}: ends before its index; allowed: a whole part")
    return content, places


def _walked(content, path):
    places, at = [], 0
    while at < len(content):
        before = content[at : at + BEFORE]
        size = AROUND + int.from_bytes(before[:8], "little")
        if len(before) < BEFORE or at + size > len(content):
            raise Refused(f"{path}: ends inside a record; allowed: a whole part of TFRecords")
        places.append((at, size))
        at += size
    return np.array(places, np.int64)


AROUND = 16
"""Bytes around a TFRecord's message: its length (8), and the checksums of both (4 each)."""
BEFORE = 12  # of them, those before the message


def fields(message):
    """The fields of a message of Protocol Buffers, (number, bytes or integer), below number 16."""
    at, end = 0, len(message)
    while at < end:
        key, value = message[at], message[at + 1]
        at += 2
        if value & 0x80:
            value, at = varint(message, at - 1)
        if key & 7 == 2:  # the value is a length
            value, at = message[at : at + value], at + value
        yield key >> 3, value


def varint(message, at):
    """The number that begins at a byte, and where what follows it begins."""
    value = shift = 0
    while message[at] & 0x80:
        value |= (message[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | message[at] << shift, at + 1
