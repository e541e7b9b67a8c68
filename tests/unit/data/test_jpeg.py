"""What is known about a JPEG without decoding it."""

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from reperf.data.images.jpeg import as_rgb_jpeg, read_frame

from tests.unit.data.pictures import encoded, jpeg, picture

KINDS = {
    "baseline": jpeg(),
    "progressive": jpeg(progressive=True),
    "optimised": jpeg(optimize=True),
    "restarts": jpeg(restart_marker_blocks=2),
    "with a comment": jpeg(comment=b"\xff\xd9 no end"),
    "with EXIF": jpeg(exif=b"Exif\0\0" + jpeg(seed=7)),
    "grey": encoded(picture(0, "L")),
    "CMYK": encoded(picture(0, "CMYK")),
}
WHOLE = KINDS["baseline"]


def sized(height: int, width: int, components: int = 3) -> bytes:
    """A JPEG whose header says that it is as large."""
    return WHOLE.replace(b"\0\x20\0\x30\3", struct.pack(">HHB", height, width, components))


@pytest.mark.parametrize("kind", KINDS)
def test_the_frame_is_what_a_decoder_sees_and_every_cut_is_refused(kind):
    data = KINDS[kind]
    frame = read_frame(data)
    decoded = Image.open(io.BytesIO(data))
    assert (frame.width, frame.height) == decoded.size
    assert frame.components == len(decoded.getbands())
    for size in range(len(data)):
        with pytest.raises(ValueError, match=r"cut|not a JPEG"):
            read_frame(data[:size])


def test_bytes_after_the_end_and_before_a_marker_are_allowed():
    assert read_frame(WHOLE + bytes(100)) == read_frame(WHOLE)
    for more in (b"\xff\xff", b"\xff\x01"):  # fill bytes, and a marker without a segment
        assert read_frame(WHOLE[:2] + more + WHOLE[2:]) == read_frame(WHOLE)


def test_the_largest_image_has_eighty_million_pixels():
    assert read_frame(sized(8_000, 10_000))[:2] == (8_000, 10_000)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a JPEG"),
        (b"<html>not found</html>", "not a JPEG"),
        (encoded(picture(0), "GIF"), "not a JPEG"),
        (WHOLE.replace(b"\xff\xc0", b"\xff\xc3"), "SOF3"),
        (WHOLE.replace(b"\xff\xc0", b"\xff\xc9"), "SOF9"),
        (WHOLE.replace(b"\xff\xc0\x00\x11\x08", b"\xff\xc0\x00\x11\x0c"), "12 bits"),
        (sized(0, 48), "48x0"),
        (sized(8_001, 10_000), "10000x8001 pixels, more than 80000000"),
        (sized(32, 48, components=2), "2 colour components"),
        (WHOLE.replace(b"\xff\xdb", b"\xff\xe5"), "no quantisation table"),
        (WHOLE.replace(b"\xff\xc0", b"\xff\xe5"), "no frame header"),
        (WHOLE[:2] + b"\0\0" + WHOLE[2:], "byte 2 is not a marker"),
    ],
)
def test_what_no_decoder_takes_is_refused_with_the_reason(data, reason):
    with pytest.raises(ValueError, match=reason):
        read_frame(data)


@given(st.integers(2, len(WHOLE) - 1), st.integers(0, 255))
def test_any_changed_byte_is_read_or_refused(at, byte):
    changed = WHOLE[:at] + bytes([byte]) + WHOLE[at + 1 :]
    try:
        frame = read_frame(changed)
    except ValueError as refusal:
        assert str(refusal)
    else:
        assert frame.height * frame.width > 0


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data):
    with pytest.raises(ValueError, match=r"."):
        read_frame(b"\xff\xd8" + data)


@pytest.mark.parametrize("data", [KINDS["CMYK"], encoded(picture(3), "PNG")])
def test_what_is_encoded_anew_is_an_rgb_jpeg_with_the_same_picture(data):
    image = Image.open(io.BytesIO(as_rgb_jpeg(data)))
    assert (image.format, image.mode) == ("JPEG", "RGB")
    assert image.size == Image.open(io.BytesIO(data)).size
    assert read_frame(as_rgb_jpeg(data)).components == 3
    with pytest.raises(ValueError, match=r"."):
        as_rgb_jpeg(data[:200])
