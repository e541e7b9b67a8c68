"""Protocol Buffers' wire format, as far as maps of features need it.

TensorFlow's Example and OneFlow's OFRecord are both a `map<string, Feature>` whose features are
lists of bytes or integers. Entries are written in the order of their keys, which is what Protocol
Buffers calls deterministic serialisation.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from functools import lru_cache

# Sizes, classes and formats repeat from image to image: what they become is kept, a few thousand.
remembered = lru_cache(maxsize=1 << 12)


def varint(number: int) -> bytes:
    """A number from 0 to 2**64 - 1, seven bits a byte, lowest first."""
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
    """What stands before the content of a length-delimited field of `size` bytes."""
    return varint(number << 3 | 2) + varint(size)


@remembered
def bytes_entry(key: bytes, content: bytes) -> bytes:
    """A map's entry that holds a bytes_list (field 1 of Feature) of one value."""
    return bytes_entry_head(key, len(content)) + content


def bytes_entry_head(key: bytes, size: int) -> bytes:
    """What stands before the `size` bytes of a bytes_entry, which ends with its content."""
    value = field_head(1, size)
    bytes_list = field_head(1, len(value) + size) + value
    feature = field(1, key) + field_head(2, len(bytes_list) + size) + bytes_list
    return field_head(1, len(feature) + size) + feature


@remembered
def integer_entry(key: bytes, kind: int, number: int) -> bytes:
    """A map's entry that holds a packed list of one integer from 0.

    Args:
        kind: the list's field number in Feature.
    """
    return field(1, field(1, key) + field(2, field(kind, field(1, varint(number)))))
