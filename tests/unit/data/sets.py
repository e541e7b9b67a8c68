"""Small sets of a user's own, of every kind: how they are written, converted and read again."""

import io
import json
import random
from argparse import Namespace
from itertools import islice
from pathlib import Path
from struct import pack

from PIL import Image
from reperf.config import Data
from reperf.data.kind import Manifest
from reperf.data.text_files import END
from tokenizers.pre_tokenizers import ByteLevel
from trainers.inputs.clicks import click_batches
from trainers.inputs.pairs import pair_batches
from trainers.inputs.tokens import token_batches
from trainers.inputs.words import word_batches

SMALL = {"parts": 4, "seed": 3}
SMALL_OF = {
    "text": {"vocabulary_size": 2000, "sequence_length": 64, "max_predictions": 10},
    "words": {"thinning": 1.0},
}
OWN_KEYS = {"text": {"passes": 2}}
"""Further keys of a user's own set."""
READERS = {
    "clicks": (click_batches, {"rows": 1_000_001}),
    "pairs": (pair_batches, {"longest": 41, "vocabulary": 257}),
    "tokens": (token_batches, {"context": 16, "vocabulary": 257}),
    "words": (word_batches, {"vocabulary": 16, "window": 2, "negatives": 3}),
}
"""What reads a kind, and the shape of a workload."""


def picture(seed: int, mode: str = "RGB", size: tuple[int, int] = (48, 32)) -> Image.Image:
    """An image of random pixels."""
    channels = {"L": 1, "RGB": 3, "CMYK": 4}[mode]
    return Image.frombytes(mode, size, random.Random(seed).randbytes(size[0] * size[1] * channels))


def encoded(image: Image.Image, kind: str = "JPEG", **options) -> bytes:
    """The bytes of an image file."""
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def jpeg(seed: int = 0, **options) -> bytes:
    """The bytes of a small colour JPEG."""
    return encoded(picture(seed), **options)


def headers(number: int) -> bytes:
    """A grey JPEG of 48 by 32 pixels whose scan is empty, with a number in its comment."""
    comment = b"\xff\xfe\0\4" + pack(">H", number)
    frame = b"\xff\xc0\0\x0b\x08\0\x20\0\x30\1\1\x11\0"
    return b"\xff\xd8" + comment + frame + b"\xff\xda\0\x08\1\1\0\0\x3f\0\xff\xd9"


def images(**images_per_class: int) -> dict[str, bytes]:
    """The files of a set of images, no two alike."""
    return {
        f"train/{synset}/{synset}_{number}.JPEG": headers(1000 * label + number)
        for label, (synset, count) in enumerate(images_per_class.items())
        for number in range(count)
    }


def byte_pairs(*merges: str) -> dict[str, str]:
    """The files of a vocabulary as GPT-2's: 256 bytes, the end of a document, and these pairs."""
    tokens = [*sorted(ByteLevel.alphabet()), END, *(pair.replace(" ", "") for pair in merges)]
    ids = {token: number for number, token in enumerate(tokens)}
    return {"vocab.json": json.dumps(ids), "merges.txt": "".join(f"{pair}\n" for pair in merges)}


TEXT = "".join(f"Die Tür hat {one} grüne Fische.\nDie Tür fehlt.\n\n" for one in range(40))
SENTENCES = "".join("ü" * (number % 20) + "\n" for number in range(200))
OWN = {
    "clicks": 40 * ("\t".join(["1", *12 * ["7"], "-1", *26 * ["0123abcd"]]) + "\n"),
    "images": images(n01=7, n02=1, n03=4),
    "pairs": {"source.txt": SENTENCES, "target.txt": SENTENCES},
    "text": TEXT,
    "tokens": TEXT,
    "words": TEXT,
}


def small(kind: str, own: Path | None = None, **keys: object) -> Data:
    """A small set of the user's own, or an embedded one. Keys are taken unchecked."""
    usual = {"name": "small", "kind": kind, kind: own} | SMALL | SMALL_OF.get(kind, {})
    return Data(**usual).model_copy(update=keys)


def convert(data: Data, folder: Path, format_name: str = "", workers: int = 1) -> Manifest:
    """Convert a set, to its kind's first format if to no other; returns its manifest."""
    kind = data.of_kind
    return kind.convert(folder, format_name or kind.formats[0], workers)


def batches(kind: str, folder: Path, number: int, size: int, *, rank=0, ranks=1, **shape) -> list:
    """The first batches that a rank reads."""
    read, usual = READERS[kind]
    flags = Namespace(data=str(folder), batch_size=size, shape=usual | shape)
    return list(islice(read(flags, rank, ranks, None), number))


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones too."""
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}
