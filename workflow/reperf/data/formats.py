"""The record formats by their names in the configuration."""

from reperf.data.format import Format
from reperf.data.ofrecord import OFRECORD
from reperf.data.recordio import RECORDIO
from reperf.data.tfrecord import TFRECORD

FORMATS: dict[str, Format] = {"tfrecord": TFRECORD, "ofrecord": OFRECORD, "recordio": RECORDIO}
