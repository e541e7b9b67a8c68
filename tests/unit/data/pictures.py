"""Small real images of every kind that a data set may hold."""

import io
import random
from pathlib import Path

from PIL import Image

BYTES_A_PIXEL = {"L": 1, "RGB": 3, "CMYK": 4}


def picture(seed: int, mode: str = "RGB", size: tuple[int, int] = (48, 32)) -> Image.Image:
    """An image of random pixels."""
    width, height = size
    pixels = random.Random(seed).randbytes(width * height * BYTES_A_PIXEL[mode])
    return Image.frombytes(mode, size, pixels)


def encoded(image: Image.Image, kind: str = "JPEG", **options) -> bytes:
    """The bytes of an image file."""
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def jpeg(seed: int = 0, **options) -> bytes:
    """The bytes of a small colour JPEG."""
    return encoded(picture(seed), **options)


def make_set(folder: Path, **images_per_class: int) -> Path:
    """Fill a folder with train/<synset>/<synset>_<number>.JPEG, no two alike."""
    for number_of_class, (synset, count) in enumerate(images_per_class.items()):
        (folder / "train" / synset).mkdir(parents=True)
        for number in range(count):
            path = folder / "train" / synset / f"{synset}_{number}.JPEG"
            path.write_bytes(jpeg(seed=1000 * number_of_class + number))
    return folder
