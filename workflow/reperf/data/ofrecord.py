"""OFRecord's framing, whatever the messages hold.

A record is the message's length (8 bytes, little-endian) and the message; there is no checksum.

Source: https://docs.oneflow.org/en/v0.4.0/extended_topics/ofrecord.html.
"""

from struct import pack


def framed(*pieces: bytes) -> list[bytes]:
    """The pieces of the record of a message, which is given in pieces."""
    first, *others = pieces
    return [pack("<q", sum(map(len, pieces))) + first, *others]
