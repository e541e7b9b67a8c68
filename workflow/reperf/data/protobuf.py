"""As much of Protocol Buffers' wire format as maps of features need.

TensorFlow's Example and OneFlow's OFRecord are both a `map<string, Feature>` whose features are
lists of bytes or integers. Entries are written in the order of their keys, which is what Protocol
Buffers calls deterministic serialisation.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from functools import lru_cache

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
    return bytes_entry_head(key, len(content)) + content


def bytes_entry_head(key: bytes, size: int) -> bytes:
    """What precedes the `size` bytes of content that end a bytes_entry."""
    value = field_head(1, size)
    bytes_list = field_head(1, len(value) + size) + value
    feature = field(1, key) + field_head(2, len(bytes_list) + size) + bytes_list
    return field_head(1, len(feature) + size) + feature


@remembered
def integer_entry(key: bytes, kind: int, number: int) -> bytes:
    """A map's entry that holds a packed list of one integer, 0 or more.

    Args:
        kind: the list's field number in Feature.
    """
    return field(1, field(1, key) + field(2, field(kind, field(1, varint(number)))))
