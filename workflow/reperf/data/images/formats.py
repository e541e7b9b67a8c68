"""The record formats of images, by their names in the configuration.

TFRecord holds tf.train.Example messages with the keys of the usual ImageNet conversion, OFRecord
OneFlow's messages with the keys that its ImageNet conversion writes: the same ones, but for their
prefix. Readers of OFRecord need `encoded` and `class/label`; the text and the boxes that OneFlow's
own tool takes from other files are left out.

Sources: tensorflow/core/example/feature.proto and oneflow/core/record/record.proto (fields), the
ImageNet conversion of tensorflow/models and OneFlow-Benchmark's imagenet_ofrecord.py (keys).
"""

from reperf.data.framing import index_line, ofrecord, tfrecord
from reperf.data.images.image import Image
from reperf.data.images.recordio import RECORDIO
from reperf.data.part import Format
from reperf.data.protobuf import BYTES_LIST, bytes_entry, entry_head, field_head, integer_entry

INT64_LIST_OF_TENSORFLOW = 3
INT32_LIST_OF_ONEFLOW = 4


def _as_example(image: Image) -> list[bytes]:
    """The pieces of an image's record. Labels count from 1, because 0 is the background."""
    before, after = _features(image, b"image/", INT64_LIST_OF_TENSORFLOW, image.label + 1)
    size = len(before) + len(image.data) + len(after)
    return tfrecord(field_head(1, size) + before, image.data, after)


def _as_ofrecord(image: Image) -> list[bytes]:
    """The pieces of an image's record. Labels count from 0."""
    number = bytes_entry(b"data_id", str(image.index).encode())
    before, after = _features(image, b"", INT32_LIST_OF_ONEFLOW, image.label, number)
    return ofrecord(before, image.data, after)


def _features(
    image: Image, prefix: bytes, integers: int, label: int, number: bytes = b""
) -> tuple[bytes, bytes]:
    """What precedes and what follows the JPEG in an image's map of features.

    Args:
        prefix: of the keys.
        integers: the field number in Feature of the list that holds whole numbers.
        number: the entry of the image's number, for formats that have one.
    """
    before = (
        integer_entry(prefix + b"channels", integers, 3)
        + integer_entry(prefix + b"class/label", integers, label)
        + bytes_entry(prefix + b"class/synset", image.synset.encode())
        + bytes_entry(prefix + b"colorspace", b"RGB")
        + number
        + entry_head(prefix + b"encoded", BYTES_LIST, len(image.data))
    )
    after = (
        bytes_entry(prefix + b"filename", image.name.encode())
        + bytes_entry(prefix + b"format", b"JPEG")
        + integer_entry(prefix + b"height", integers, image.height)
        + integer_entry(prefix + b"width", integers, image.width)
    )
    return before, after


TFRECORD = Format(_as_example, sidecars={".idx": index_line})
OFRECORD = Format(_as_ofrecord)
FORMATS: dict[str, Format[Image]] = {
    "tfrecord": TFRECORD,
    "ofrecord": OFRECORD,
    "recordio": RECORDIO,
}
