"""What can be known about a JPEG without decoding its pixels.

The check reads what ITU-T T.81 (annex B) calls the headers: every marker segment up to the first
scan, and the end-of-image marker. It finds a file that is not a JPEG, was cut short, lacks what a
decoder needs, or uses a process that common decoders do not know. It does not decode the scan:
changed bytes inside it go unnoticed; decoders do not stop at them either.
"""

import io
import warnings
import zlib
from struct import error as CutShort
from struct import unpack_from
from typing import NamedTuple

from PIL import Image

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
START_OF_IMAGE = b"\xff\xd8"
END_OF_IMAGE = b"\xff\xd9"
QUANTISATION_TABLE = 0xDB
START_OF_SCAN = 0xDA
FRAMES = {0xC0, 0xC1, 0xC2}  # baseline, extended sequential, progressive
OTHER_FRAMES = {0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}
BARE_MARKERS = {0x01, *range(0xD0, 0xD8)}  # markers without a segment
MOST_MARKERS = 100_000
"""Before the first scan; a file of nothing but markers would take a minute."""
MOST_PIXELS = 80_000_000
"""Of an image: 240 MB once decoded, in every process that reads; ImageNet has up to 12 million."""


# What Pillow raises for a broken image, depending on which byte is wrong.
_BROKEN = (
    OSError,
    SyntaxError,
    EOFError,
    LookupError,
    OverflowError,
    ArithmeticError,
    CutShort,
    zlib.error,
    Image.DecompressionBombError,
)


class Frame(NamedTuple):
    """The frame header: size in pixels, and 1 (grey), 3 (colour) or 4 (CMYK) components."""

    height: int
    width: int
    components: int


def read_frame(data: bytes) -> Frame:
    """Check a JPEG's headers and end, and return its frame header.

    Raises:
        ValueError: why the image does not decode.
    """
    if not data.startswith(START_OF_IMAGE):
        raise ValueError("not a JPEG")
    try:
        frame, scan = _walk(data)
    except CutShort:
        raise ValueError("cut inside its headers") from None
    # In a scan every 0xff is followed by 0x00 or a restart marker, so this is the real end.
    if data.rfind(END_OF_IMAGE, scan) < 0:
        raise ValueError("cut: the end-of-image marker is missing")
    return frame


def _walk(data: bytes) -> tuple[Frame, int]:
    """Walk the segments up to the first scan: the frame, and where the scan's header ends."""
    frame = None
    quantised = False
    at = 2
    for _ in range(MOST_MARKERS):
        prefix, marker = unpack_from(">BB", data, at)
        if prefix != 0xFF:
            raise ValueError(f"byte {at} is not a marker")
        if marker == 0xFF:  # a fill byte
            at += 1
            continue
        if marker in BARE_MARKERS:
            at += 2
            continue
        (length,) = unpack_from(">H", data, at + 2)
        if marker in FRAMES:
            frame = _frame(data, at + 4)
        elif marker in OTHER_FRAMES:
            raise ValueError(f"coding process SOF{marker - 0xC0}, which common decoders lack")
        elif marker == QUANTISATION_TABLE:
            quantised = True
        at += 2 + length
        if marker == START_OF_SCAN:
            break
    else:
        raise ValueError(f"more than {MOST_MARKERS} markers before the first scan")
    if frame is None:
        raise ValueError("no frame header before the first scan")
    if not quantised:
        raise ValueError("no quantisation table before the first scan")
    return frame, at


def _frame(data: bytes, at: int) -> Frame:
    precision, height, width, components = unpack_from(">BHHB", data, at)
    if precision != 8:
        raise ValueError(f"{precision} bits per sample, which common decoders lack")
    if height == 0 or width == 0:
        raise ValueError(f"a size of {width}x{height} pixels")
    _check_size(width, height)
    if components not in (1, 3, 4):
        raise ValueError(f"{components} colour components")
    return Frame(height, width, components)


def _check_size(width: int, height: int) -> None:
    if width * height > MOST_PIXELS:
        raise ValueError(f"{width}x{height} pixels, more than {MOST_PIXELS}")


def as_rgb_jpeg(data: bytes) -> bytes:
    """Decode an image and encode it as an RGB JPEG of quality 100.

    For ImageNet's CMYK JPEGs and its PNG with a JPEG's name; the result depends on Pillow's
    version.

    Raises:
        ValueError: why the image does not decode.
    """
    encoded = io.BytesIO()
    try:
        with warnings.catch_warnings():
            # What is too large is refused below, and no other warning is about a fault.
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data)) as image:
                _check_size(*image.size)
                if image.mode[0] in "IF":  # RGB would be white wherever a sample is above 255
                    raise ValueError("more than 8 bits per sample, which a JPEG cannot hold")
                image.convert("RGB").save(encoded, "JPEG", quality=100)
    except _BROKEN as error:
        raise ValueError(str(error) or type(error).__name__) from None
    return encoded.getvalue()
