"""The framing of TFRecord and OFRecord, and the messages of Protocol Buffers in both.

A TFRecord is the message's length (8 bytes, little-endian), that length's masked CRC32C, the
message, and the message's masked CRC32C. An OFRecord is the length and the message; there is no
checksum. TensorFlow's Example and OneFlow's OFRecord are both a `map<string, Feature>` whose
features are lists of bytes, integers or floats. Entries are written in the order of their keys,
which is what Protocol Buffers calls deterministic serialisation.

Sources: https://www.tensorflow.org/tutorials/load_data/tfrecord,
https://docs.oneflow.org/en/v0.4.0/extended_topics/ofrecord.html,
https://protobuf.dev/programming-guides/encoding/
"""

from functools import lru_cache
from struct import pack

from google_crc32c import extend


def tfrecord(*pieces: bytes) -> list[bytes]:
    """The pieces of the record of a message, which is given in pieces."""
    checksum = size = 0
    for piece in pieces:
        checksum = extend(checksum, piece)
        size += len(piece)
    length = pack("<Q", size)
    first, *others = pieces
    return [length + masked(extend(0, length)) + first, *others, masked(checksum)]


def masked(checksum: int) -> bytes:
    """A CRC32C as TFRecord stores it: rotated, because a CRC of data with CRCs in it is weak."""
    rotated = (checksum >> 15 | checksum << 17) & 0xFFFFFFFF
    return pack("<I", (rotated + 0xA282EAD8) & 0xFFFFFFFF)


def index_line(_: object, offset: int, size: int) -> str:
    """A line of the index that DALI's tfrecord2idx makes."""
    return f"{offset} {size}\n"


def ofrecord(*pieces: bytes) -> list[bytes]:
    """The pieces of the record of a message, which is given in pieces."""
    first, *others = pieces
    return [pack("<q", sum(map(len, pieces))) + first, *others]


BYTES_LIST = 1  # its field number in Feature

# Sizes, classes and formats repeat from image to image: a few thousand of their entries are kept.
remembered = lru_cache(maxsize=1 << 12)


def varint(number: int) -> bytes:
    """A number from 0 to 2**64 - 1: seven bits per byte, lowest first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field: a string, bytes, a message or a packed list."""
    return field_head(number, len(content)) + content


def field_head(number: int, size: int) -> bytes:
    """What precedes the content of a length-delimited field of `size` bytes."""
    return varint(number << 3 | 2) + varint(size)


@remembered
def bytes_entry(key: bytes, content: bytes) -> bytes:
    """A map's entry that holds a bytes_list (field 1 of Feature) of one value."""
    return entry_head(key, BYTES_LIST, len(content)) + content


def entry_head(key: bytes, kind: int, size: int) -> bytes:
    """What precedes the `size` bytes that end a map's entry: one value, or a packed list.

    The list's field number in Feature is its kind.
    """
    value = field_head(1, size)
    one_list = field_head(kind, len(value) + size) + value
    feature = field(1, key) + field_head(2, len(one_list) + size) + one_list
    return field_head(1, len(feature) + size) + feature


@remembered
def integer_entry(key: bytes, kind: int, number: int) -> bytes:
    """A map's entry that holds a packed list, of a kind, of one integer, 0 or more."""
    content = varint(number)
    return entry_head(key, kind, len(content)) + content
