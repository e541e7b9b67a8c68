"""OFRecord: OneFlow's records with the keys that its ImageNet conversion writes.

Readers need `encoded` and `class/label`. The text and the boxes that OneFlow's own tool takes from
other files are left out.

Sources: oneflow/core/record/record.proto (fields),
OneFlow-Benchmark's imagenet_ofrecord.py (keys; its labels count from 0).
"""

from reperf.data.framing import Format
from reperf.data.images.image import Image
from reperf.data.ofrecord import framed
from reperf.data.protobuf import BYTES_LIST, bytes_entry, entry_head, integer_entry

INT32_LIST = 4


def frame(image: Image) -> list[bytes]:
    """The pieces of an image's record. Labels count from 0."""
    before = (
        integer_entry(b"channels", INT32_LIST, 3)
        + integer_entry(b"class/label", INT32_LIST, image.label)
        + bytes_entry(b"class/synset", image.synset.encode())
        + bytes_entry(b"colorspace", b"RGB")
        + bytes_entry(b"data_id", str(image.index).encode())
        + entry_head(b"encoded", BYTES_LIST, len(image.data))
    )
    after = (
        bytes_entry(b"filename", image.name.encode())
        + bytes_entry(b"format", b"JPEG")
        + integer_entry(b"height", INT32_LIST, image.height)
        + integer_entry(b"width", INT32_LIST, image.width)
    )
    return framed(before, image.data, after)


OFRECORD = Format(frame)
