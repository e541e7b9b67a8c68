"""Readers of the record formats that share no code with the writers.

Slow, and written from the formats' definitions: they are what the writers are held against.
"""

import struct
from pathlib import Path

from google_crc32c import value as crc32c
from trainers.inputs.parts import fields, varint

MAGIC = 0xCED7230A


def unmasked(stored: bytes) -> int:
    rotated = (int.from_bytes(stored, "little") - 0xA282EAD8) % 2**32
    return (rotated >> 17 | rotated << 15) % 2**32


def messages(content: bytes, format_name: str = "tfrecord") -> list[bytes]:
    """The messages of a part; of TFRecords, both checksums of each are compared."""
    found, at = [], 0
    while at < len(content):
        (size,) = struct.unpack_from("<Q", content, at)
        begin = at + {"tfrecord": 12, "ofrecord": 8}[format_name]
        found.append(content[begin : begin + size])
        assert len(found[-1]) == size
        if format_name == "tfrecord":
            assert unmasked(content[at + 8 : begin]) == crc32c(content[at : at + 8])
            assert unmasked(content[begin + size : begin + size + 4]) == crc32c(found[-1])
            size += 4
        at = begin + size
    return found


def recordio(content: bytes) -> list[tuple[int, float, int, bytes]]:
    """Of each record of a RecordIO file with MXNet's header: offset, label, id and JPEG."""
    records, at = [], 0
    whole, first = b"", 0
    while at < len(content):
        magic, word = struct.unpack_from("<II", content, at)
        assert magic == MAGIC
        flag, size = word >> 29, word & (1 << 29) - 1
        piece = content[at + 8 : at + 8 + size]
        padding = -size % 4
        assert content[at + 8 + size :][:padding] == bytes(padding)
        assert len(piece) == size
        if flag in (0, 1):
            whole, first = piece, at
        else:
            whole += struct.pack("<I", MAGIC) + piece
        if flag in (0, 3):
            zero, label, index, other = struct.unpack_from("<IfQQ", whole)
            assert (zero, other) == (0, 0)
            records.append((first, label, index, whole[24:]))
        at += 8 + size + padding
    return records


def features(message: bytes, format_name: str) -> dict[str, bytes | list]:
    """What a tf.train.Example or an OFRecord has: bytes or lists by keys, as they are ordered."""
    if format_name == "tfrecord":
        ((_, message),) = fields(message)
    integers = {"tfrecord": 3, "ofrecord": 4}[format_name]
    found = {}
    for _, entry in fields(message):
        (_, key), (_, value) = fields(entry)
        ((kind, values),) = fields(value)
        ((_, content),) = fields(values)
        found[key.decode()] = {1: bytes, 2: _floats, integers: _integers}[kind](content)
    return found


def _floats(packed: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(packed) // 4}f", packed))


def _integers(packed: bytes) -> list[int]:
    found, at = [], 0
    while at < len(packed):
        number, at = varint(packed, at)
        found.append(number)
    return found


def read_folder(folder: Path, format_name: str) -> list[dict[str, bytes | list]]:
    """The features of all records of a folder's parts."""
    parts = sorted(folder.glob("part-?????"))
    found = (one for part in parts for one in messages(part.read_bytes(), format_name))
    return [features(one, format_name) for one in found]


def read_images(folder: Path, format_name: str) -> list[tuple[int, bytes]]:
    """The (label from 0, JPEG) of each record of a folder's parts."""
    if format_name == "recordio":
        parts = sorted(folder.glob("part-*.rec"))
        found = (one for part in parts for one in recordio(part.read_bytes()))
        return [(int(label), data) for _, label, _, data in found]
    prefix, first = ("image/", 1) if format_name == "tfrecord" else ("", 0)
    return [
        (one[f"{prefix}class/label"][0] - first, one[f"{prefix}encoded"])
        for one in read_folder(folder, format_name)
    ]
