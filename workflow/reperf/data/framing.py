"""The framing of TFRecord and OFRecord, whatever the messages hold.

A TFRecord is the message's length (8 bytes, little-endian), that length's masked CRC32C, the
message, and the message's masked CRC32C. An OFRecord is the length and the message; there is no
checksum.

Sources: https://www.tensorflow.org/tutorials/load_data/tfrecord,
https://docs.oneflow.org/en/v0.4.0/extended_topics/ofrecord.html.
"""

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
