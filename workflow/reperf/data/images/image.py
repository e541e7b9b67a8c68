"""One image on its way from its file into a record: what is checked, and what is encoded again.

A JPEG is not decoded: libjpeg reads its headers, and its end must be there. That finds a file that
is not a JPEG or was cut short. Changed bytes between headers and end go unnoticed; decoders do not
stop at them either.
"""

import io
import os
import stat
import warnings
from typing import NamedTuple

import simplejpeg
from PIL import Image as pillow

from reperf.errors import ReperfError
from reperf.files import reading

LARGEST_FILE = 1 << 27  # bytes of an image; ImageNet's largest has 15 million
MOST_PIXELS = 80_000_000
"""Of an image: 240 MB once decoded, in every process that reads; ImageNet has up to 12 million."""
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_START_OF_IMAGE, _START_OF_SCAN, _END_OF_IMAGE = b"\xff\xd8", b"\xff\xda", b"\xff\xd9"


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
    """Read and check an image; only a CMYK JPEG or a PNG is encoded again."""
    data = _read(path)
    if not data:
        raise ReperfError(f"{path}: an empty file; allowed: a JPEG")
    try:
        reencoded = data.startswith(_PNG_SIGNATURE)
        if not reencoded:
            height, width, colours = read_headers(data)
            reencoded = colours in ("CMYK", "YCCK")
        if reencoded:
            data = as_rgb_jpeg(data)
            height, width, _ = read_headers(data)
    except ValueError as error:
        raise ReperfError(f"{path}: does not decode: {error}; allowed: a JPEG") from None
    return Image(data, height, width, label, synset, name, index, reencoded)


def _read(path: str) -> bytes:
    with reading(path):
        status = os.stat(path)  # noqa: PTH116 - faster, for a million images
        if not stat.S_ISREG(status.st_mode):
            raise ReperfError(f"{path}: is not a file; allowed: a JPEG")
        if status.st_size > LARGEST_FILE:
            raise ReperfError(f"{path}: has {status.st_size} bytes; allowed: up to {LARGEST_FILE}")
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return file.read()


def read_headers(data: bytes) -> tuple[int, int, str]:
    """A JPEG's height and width in pixels, and libjpeg's name of its colours, such as CMYK.

    A ValueError says why the image does not decode, as far as headers and end show.
    """
    if not data.startswith(_START_OF_IMAGE):
        raise ValueError("not a JPEG")
    try:
        height, width, colours, _ = simplejpeg.decode_jpeg_header(data, strict=False)
    except (ValueError, KeyError):  # of subsampling that has no name, as without headers
        raise ValueError("its headers are cut short or damaged") from None
    _check_size(width, height)
    # A thumbnail's end has the image's scan after it. In a scan, 0x00 or a restart marker follows
    # every 0xff.
    end = data.rfind(_END_OF_IMAGE)
    if end < 0 or data.find(_START_OF_SCAN, end) >= 0:
        raise ValueError("cut: the end-of-image marker is missing")
    return height, width, colours


def _check_size(width: int, height: int) -> None:
    if width * height > MOST_PIXELS:
        raise ValueError(f"{width}x{height} pixels, more than {MOST_PIXELS}")


def as_rgb_jpeg(data: bytes) -> bytes:
    """Encode an image that Pillow decodes as an RGB JPEG of quality 100; else a ValueError."""
    encoded = io.BytesIO()
    try:
        with warnings.catch_warnings():
            # What is too large is refused below, and no other warning is about a fault.
            warnings.simplefilter("ignore")
            with pillow.open(io.BytesIO(data)) as image:
                _check_size(*image.size)
                if image.mode[0] in "IF":  # RGB would be white wherever a sample is above 255
                    raise ValueError("more than 8 bits per sample, which a JPEG cannot hold")
                image.convert("RGB").save(encoded, "JPEG", quality=100)
    except Exception as error:  # what Pillow raises depends on which byte is wrong
        raise ValueError(str(error) or type(error).__name__) from None
    return encoded.getvalue()
