"""The record formats by their names in the configuration."""

from reperf.data import RECORD_FORMATS
from reperf.data.framing import Format
from reperf.data.images.image import Image
from reperf.data.images.image_ofrecord import OFRECORD
from reperf.data.images.image_tfrecord import TFRECORD
from reperf.data.images.recordio import RECORDIO

FORMATS: dict[str, Format[Image]] = dict(
    zip(RECORD_FORMATS, (TFRECORD, OFRECORD, RECORDIO), strict=True)
)
