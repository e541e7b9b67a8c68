"""TFRecord: tf.train.Example messages with the keys of the usual ImageNet conversion.

Sources: tensorflow/core/example/feature.proto (fields), the ImageNet conversion of
tensorflow/models (keys).
"""

from reperf.data.framing import Format
from reperf.data.images.image import Image
from reperf.data.protobuf import BYTES_LIST, bytes_entry, entry_head, field_head, integer_entry
from reperf.data.tfrecord import framed, index_line

INT64_LIST = 3


def frame(image: Image) -> list[bytes]:
    """The pieces of an image's record. Labels count from 1, because 0 is the background."""
    before = (
        integer_entry(b"image/channels", INT64_LIST, 3)
        + integer_entry(b"image/class/label", INT64_LIST, image.label + 1)
        + bytes_entry(b"image/class/synset", image.synset.encode())
        + bytes_entry(b"image/colorspace", b"RGB")
        + entry_head(b"image/encoded", BYTES_LIST, len(image.data))
    )
    after = (
        bytes_entry(b"image/filename", image.name.encode())
        + bytes_entry(b"image/format", b"JPEG")
        + integer_entry(b"image/height", INT64_LIST, image.height)
        + integer_entry(b"image/width", INT64_LIST, image.width)
    )
    size = len(before) + len(image.data) + len(after)
    return framed(field_head(1, size) + before, image.data, after)


TFRECORD = Format(frame, sidecars={".idx": index_line})
