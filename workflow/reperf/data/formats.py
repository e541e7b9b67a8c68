"""The record formats by their names in the configuration."""

from reperf.data import RECORD_FORMATS
from reperf.data.framing import Format
from reperf.data.ofrecord import OFRECORD
from reperf.data.recordio import RECORDIO
from reperf.data.tfrecord import TFRECORD

FORMATS: dict[str, Format] = dict(zip(RECORD_FORMATS, (TFRECORD, OFRECORD, RECORDIO), strict=True))
