"""Readers of the record formats that share no code with the writers.

Slow, and written from the formats' definitions: they are what the writers are held against.
"""

import struct
from pathlib import Path

from google_crc32c import value as crc32c

MAGIC = 0xCED7230A


def unmasked(stored: bytes) -> int:
    rotated = (int.from_bytes(stored, "little") - 0xA282EAD8) % 2**32
    return (rotated >> 17 | rotated << 15) % 2**32


def tfrecords(content: bytes) -> list[bytes]:
    """The messages of a TFRecord file, both checksums of each compared."""
    messages, at = [], 0
    while at < len(content):
        length = content[at : at + 8]
        (size,) = struct.unpack("<Q", length)
        message = content[at + 12 : at + 12 + size]
        assert len(message) == size
        assert unmasked(content[at + 8 : at + 12]) == crc32c(length)
        assert unmasked(content[at + 12 + size : at + 16 + size]) == crc32c(message)
        messages.append(message)
        at += 16 + size
    return messages


def ofrecords(content: bytes) -> list[bytes]:
    """The messages of an OFRecord file."""
    messages, at = [], 0
    while at < len(content):
        (size,) = struct.unpack_from("<q", content, at)
        messages.append(content[at + 8 : at + 8 + size])
        assert len(messages[-1]) == size
        at += 8 + size
    return messages


def recordio(content: bytes) -> list[tuple[int, bytes]]:
    """The (offset, content) of each record of a RecordIO file, its pieces joined again."""
    records, at = [], 0
    whole, begin = b"", 0
    while at < len(content):
        magic, word = struct.unpack_from("<II", content, at)
        assert magic == MAGIC
        flag, size = word >> 29, word & (1 << 29) - 1
        piece = content[at + 8 : at + 8 + size]
        assert len(piece) == size
        if flag in (0, 1):
            whole, begin = piece, at
        else:
            whole += struct.pack("<I", MAGIC) + piece
        at += 8 + size
        padding = -size % 4
        assert content[at : at + padding] == bytes(padding)
        at += padding
        if flag in (0, 3):
            records.append((begin, whole))
    return records


def image_record(content: bytes) -> tuple[float, int, bytes]:
    """Label, id and JPEG of a RecordIO record with MXNet's header."""
    flag, label, index, zero = struct.unpack_from("<IfQQ", content)
    assert (flag, zero) == (0, 0)
    return label, index, content[24:]


def features(message: bytes, format_name: str) -> dict[str, bytes | list]:
    """What a tf.train.Example or an OFRecord has: bytes or lists by keys, as they are ordered."""
    if format_name == "tfrecord":
        ((_, message),) = fields(message)
    integers = {"tfrecord": 3, "ofrecord": 4}[format_name]
    found = {}
    for _, entry in fields(message):
        (key_number, key), (value_number, value) = fields(entry)
        assert (key_number, value_number) == (1, 2)
        ((kind, values),) = fields(value)
        ((number, content),) = fields(values)
        assert number == 1
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


def fields(message: bytes) -> list[tuple[int, bytes]]:
    """The (number, content) of a message's fields, all of them length-delimited."""
    found, at = [], 0
    while at < len(message):
        tag, at = varint(message, at)
        assert tag & 7 == 2
        size, at = varint(message, at)
        found.append((tag >> 3, message[at : at + size]))
        assert len(found[-1][1]) == size
        at += size
    return found


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where what follows it begins."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            return value, at


def records(content: bytes, format_name: str) -> list[dict[str, bytes | list]]:
    """The features of each record of a part."""
    messages = {"tfrecord": tfrecords, "ofrecord": ofrecords}[format_name](content)
    return [features(message, format_name) for message in messages]


def read_folder(folder: Path, format_name: str) -> list[dict[str, bytes | list]]:
    """The features of all records of a folder's parts."""
    parts = sorted(folder.glob("part-?????"))
    return [one for part in parts for one in records(part.read_bytes(), format_name)]


def read_images(folder: Path, format_name: str) -> list[tuple[int, bytes]]:
    """The (label from 0, JPEG) of each record of a folder's parts."""
    if format_name == "recordio":
        parts = sorted(folder.glob("part-*.rec"))
        found = (image_record(one) for part in parts for _, one in recordio(part.read_bytes()))
        return [(int(label), data) for label, _, data in found]
    prefix, first = ("image/", 1) if format_name == "tfrecord" else ("", 0)
    return [
        (one[f"{prefix}class/label"][0] - first, one[f"{prefix}encoded"])
        for one in read_folder(folder, format_name)
    ]
