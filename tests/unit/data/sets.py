"""Small sets of a user's own, of every kind: how they are converted and read again."""

from argparse import Namespace
from itertools import islice
from pathlib import Path

from reperf.config import Data
from reperf.data.kind import Manifest
from trainers.inputs.clicks import click_batches
from trainers.inputs.pairs import pair_batches
from trainers.inputs.tokens import token_batches
from trainers.inputs.words import word_batches

SMALL = {"parts": 4, "seed": 3}
SMALL_OF = {
    "text": {"vocabulary_size": 2000, "sequence_length": 64, "max_predictions": 10},
    "words": {"thinning": 1.0},
}
READERS = {
    "clicks": (click_batches, {"rows": 1_000_001}),
    "pairs": (pair_batches, {"longest": 41, "vocabulary": 257}),
    "tokens": (token_batches, {"context": 16, "vocabulary": 257}),
    "words": (word_batches, {"vocabulary": 16, "window": 2, "negatives": 3}),
}
"""What reads a kind, and the shape of a workload."""


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


def write(path: Path, written: str | bytes | dict[str, str | bytes]) -> Path:
    """Write a file, or a folder of them by their names; returns its path."""
    if isinstance(written, dict):
        path.mkdir(exist_ok=True)
        for name, one in written.items():
            write(path / name, one)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(written.encode() if isinstance(written, str) else written)
    return path
