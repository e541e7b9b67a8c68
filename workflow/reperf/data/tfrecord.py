"""TFRecord: tf.train.Example messages with the keys of the usual ImageNet conversion.

A record is the message's length (8 bytes, little-endian), that length's masked CRC32C, the
message, and the message's masked CRC32C.

Sources: https://www.tensorflow.org/tutorials/load_data/tfrecord (framing, mask),
tensorflow/core/example/feature.proto (fields), the ImageNet conversion of tensorflow/models (keys).
"""

from struct import pack

from google_crc32c import extend

from reperf.data.framing import Format
from reperf.data.image import Image
from reperf.data.protobuf import bytes_entry, bytes_entry_head, field_head, integer_entry

INT64_LIST = 3


def frame(image: Image) -> list[bytes]:
    """The pieces of an image's record. Labels count from 1, because 0 is the background."""
    before = (
        integer_entry(b"image/channels", INT64_LIST, 3)
        + integer_entry(b"image/class/label", INT64_LIST, image.label + 1)
        + bytes_entry(b"image/class/synset", image.synset.encode())
        + bytes_entry(b"image/colorspace", b"RGB")
        + bytes_entry_head(b"image/encoded", len(image.data))
    )
    after = (
        bytes_entry(b"image/filename", image.name.encode())
        + bytes_entry(b"image/format", b"JPEG")
        + integer_entry(b"image/height", INT64_LIST, image.height)
        + integer_entry(b"image/width", INT64_LIST, image.width)
    )
    size = len(before) + len(image.data) + len(after)
    before = field_head(1, size) + before
    length = pack("<Q", len(before) + len(image.data) + len(after))
    checksum = extend(extend(extend(0, before), image.data), after)
    return [
        length + masked(extend(0, length)) + before,
        image.data,
        after + masked(checksum),
    ]


def masked(checksum: int) -> bytes:
    """A CRC32C as TFRecord stores it: rotated, because a CRC of data with CRCs in it is weak."""
    rotated = (checksum >> 15 | checksum << 17) & 0xFFFFFFFF
    return pack("<I", (rotated + 0xA282EAD8) & 0xFFFFFFFF)


def index_line(_: Image, offset: int, size: int) -> str:
    """A line of the index that DALI's tfrecord2idx makes."""
    return f"{offset} {size}\n"


TFRECORD = Format(frame, sidecars={".idx": index_line})
