"""What is known about a JPEG without decoding it."""

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from reperf.data.images.image import as_rgb_jpeg, read_headers

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
def test_the_headers_are_what_a_decoder_sees_and_every_cut_is_refused(kind):
    data = KINDS[kind]
    height, width, colours = read_headers(data)
    decoded = Image.open(io.BytesIO(data))
    assert (width, height) == decoded.size
    assert colours == {"L": "Gray", "RGB": "YCbCr", "CMYK": "CMYK"}[decoded.mode]
    for size in range(len(data)):
        with pytest.raises(ValueError, match=r"cut|not a JPEG"):
            read_headers(data[:size])


def test_bytes_after_the_end_and_before_a_marker_are_allowed():
    assert read_headers(WHOLE + bytes(100)) == read_headers(WHOLE)
    for more in (b"\xff\xff", b"\xff\x01"):  # fill bytes, and a marker without a segment
        assert read_headers(WHOLE[:2] + more + WHOLE[2:]) == read_headers(WHOLE)


def test_the_largest_image_has_eighty_million_pixels():
    assert read_headers(sized(8_000, 10_000))[:2] == (8_000, 10_000)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a JPEG"),
        (b"<html>not found</html>", "not a JPEG"),
        (encoded(picture(0), "GIF"), "not a JPEG"),
        (sized(0, 48), "damaged"),
        (sized(8_001, 10_000), "10000x8001 pixels, more than 80000000"),
        (sized(32, 48, components=2), "damaged"),
        (WHOLE.replace(b"\xff\xc0", b"\xff\xe5"), "damaged"),
    ],
)
def test_what_no_decoder_takes_is_refused_with_the_reason(data, reason):
    with pytest.raises(ValueError, match=reason):
        read_headers(data)


@given(st.integers(2, len(WHOLE) - 1), st.integers(0, 255))
def test_any_changed_byte_is_read_or_refused(at, byte):
    changed = WHOLE[:at] + bytes([byte]) + WHOLE[at + 1 :]
    try:
        height, width, _ = read_headers(changed)
    except ValueError as refusal:
        assert str(refusal)
    else:
        assert height * width > 0


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data):
    with pytest.raises(ValueError, match=r"."):
        read_headers(b"\xff\xd8" + data)


@pytest.mark.parametrize("data", [KINDS["CMYK"], encoded(picture(3), "PNG")])
def test_what_is_encoded_anew_is_an_rgb_jpeg_with_the_same_picture(data):
    image = Image.open(io.BytesIO(as_rgb_jpeg(data)))
    assert (image.format, image.mode) == ("JPEG", "RGB")
    assert image.size == Image.open(io.BytesIO(data)).size
    assert read_headers(as_rgb_jpeg(data))[2] == "YCbCr"
    with pytest.raises(ValueError, match=r"."):
        as_rgb_jpeg(data[:200])
