"""The upper rows of a JPEG are those of the whole image."""

import numpy as np
import pytest
import simplejpeg
from PIL import Image
from trainers.inputs.jpeg_rows import upper_rows

from tests.unit.data.sets import encoded

HEIGHT, WIDTH = 203, 150
NOISE = np.random.default_rng(1).integers(256, size=(30, 25, 3), dtype=np.uint8)
IMAGE = Image.fromarray(NOISE).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
"""Coarse noise, in which no row or colour is like its neighbours."""


def decode(jpeg: bytes, rows: int, scale: int) -> np.ndarray:
    return simplejpeg.decode_jpeg(
        jpeg, min_height=rows // scale, min_width=WIDTH // scale, min_factor=scale, strict=False
    )


@pytest.mark.parametrize("scale", [1, 2, 4, 8])
@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("more", [{}, {"restart_marker_rows": 1}, {"exif": b"Exif\0\0" * 100}])
def test_all_but_the_last_two_rows_are_the_same_at_any_scale(scale, subsampling, more):
    jpeg = encoded(IMAGE, subsampling=subsampling, **more)
    whole = decode(jpeg, HEIGHT, scale)
    for wanted in (16 * scale, 101, 112, HEIGHT - 1):
        shorter, rows = upper_rows(memoryview(jpeg), HEIGHT, wanted)
        assert rows == wanted
        upper = decode(shorter, rows, scale)
        assert len(upper) == -(-wanted // scale)
        same = wanted // scale - 2
        assert (upper[:same] == whole[:same]).all()


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (encoded(IMAGE, progressive=True), 50),
        (encoded(IMAGE), HEIGHT),
        (encoded(IMAGE), HEIGHT + 20),
        *((no_jpeg, 50) for no_jpeg in (b"", b"\xff\xd8", b"\x89PNG\r\n\x1a\n" + bytes(50))),
        (b"\xff\xd8" + b"\xff\0" * 50, 50),
    ],
)
def test_an_image_that_cannot_end_early_or_is_needed_whole_stays_as_it_is(data, wanted):
    assert upper_rows(data, HEIGHT, wanted) == (data, HEIGHT)


def test_an_image_that_was_cut_short_is_refused_though_what_is_needed_of_it_is_there():
    """Its thumbnail ends as an image does."""
    jpeg = encoded(IMAGE, exif=b"Exif\0\0" + encoded(IMAGE.crop((0, 0, WIDTH, 20))))
    with pytest.raises(ValueError, match="ends too early"):
        upper_rows(jpeg[:-2], HEIGHT, 50)
