"""One image on its way from its file into a record."""

import os
import stat
from typing import NamedTuple

from reperf.data.images.jpeg import PNG_SIGNATURE, as_rgb_jpeg, read_frame
from reperf.errors import ReperfError
from reperf.files import reading

LARGEST_FILE = 1 << 27
"""Bytes of an image; ImageNet's largest has 15 million."""


class Image(NamedTuple):
    """A JPEG of one or three components, with what a record says about it."""

    data: bytes
    height: int
    width: int
    label: int  # from 0
    synset: str
    name: str
    index: int  # type: ignore[assignment]  # hides tuple.index: the place in the listing, from 0
    reencoded: bool


def read_image(path: str, label: int, synset: str, name: str, index: int) -> Image:
    """Read and check an image; only a CMYK JPEG or a PNG is encoded again.

    Raises:
        ReperfError: the file cannot be read, is empty or does not decode.
    """
    data = _read(path)
    if not data:
        raise ReperfError(f"{path}: an empty file; allowed: a JPEG")
    try:
        foreign = data.startswith(PNG_SIGNATURE)
        frame = None if foreign else read_frame(data)
        reencoded = frame is None or frame.components == 4
        if frame is None or reencoded:
            data = as_rgb_jpeg(data)
            frame = read_frame(data)
    except ValueError as error:
        raise ReperfError(f"{path}: does not decode: {error}; allowed: a JPEG") from None
    return Image(data, frame.height, frame.width, label, synset, name, index, reencoded)


def _read(path: str) -> bytes:
    # Plain system calls: a file object would cost as much as reading the image does.
    with reading(path):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # never wait for a pipe
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ReperfError(f"{path}: is not a file; allowed: a JPEG")
            if status.st_size > LARGEST_FILE:
                raise ReperfError(
                    f"{path}: has {status.st_size} bytes; allowed: up to {LARGEST_FILE}"
                )
            return os.read(descriptor, status.st_size)
        finally:
            os.close(descriptor)
