"""Two files of as many lines, found without holding them, and read some lines at a time."""

from array import array
from collections.abc import Iterator
from pathlib import Path

from reperf.data.pieces import read_piece
from reperf.errors import ReperfError
from reperf.files import reading

SOURCE, TARGET = "source.txt", "target.txt"
LAYOUT = f"a folder that holds {SOURCE} and {TARGET} in UTF-8, a sentence a line in both"
PIECE = 1 << 13
"""Pairs that are converted at a time."""


def check_files(folder: Path) -> None:
    """Refuse a folder that does not hold both files.

    Raises:
        ReperfError: names the file that is missing.
    """
    if not folder.exists():
        raise ReperfError(f"{folder}: no such folder; allowed: {LAYOUT}")
    for name in (SOURCE, TARGET):
        with reading(folder / name):
            if not (folder / name).is_file():
                raise ReperfError(f"{folder / name}: no such file; allowed: {LAYOUT}")


class Lines:
    """The pairs of a folder: 16 bytes of each are held, and nothing of the text.

    Raises:
        ReperfError: a file is missing or empty, or one has more lines than the other.
    """

    def __init__(self, folder: Path) -> None:
        check_files(folder)
        self.paths = folder / SOURCE, folder / TARGET
        self._edges = [_edges(path) for path in self.paths]
        source, target = (len(edges) - 1 for edges in self._edges)
        if source != target:
            longer = self.paths[source < target]
            raise ReperfError(
                f"{longer}: line {min(source, target) + 1} belongs to no other: {SOURCE} has "
                f"{source} lines and {TARGET} {target}; allowed: equally many"
            )

    def __len__(self) -> int:
        return len(self._edges[0]) - 1

    def pairs(self, first: int, end: int) -> Iterator[tuple[list[str], list[str]]]:
        """The sources and the targets of pairs, from one to before another, a piece at a time.

        Raises:
            ReperfError: a file cannot be read, has changed or is not UTF-8.
        """
        for begin in range(first, end, PIECE):
            until = min(begin + PIECE, end)
            source, target = (
                _lines(path, edges[begin], edges[until] - edges[begin])
                for path, edges in zip(self.paths, self._edges, strict=True)
            )
            yield source, target


def _edges(path: Path) -> array:
    """Where each line of a file begins, and where the last one ends."""
    edges, at = array("q", [0]), 0
    with reading(path), path.open("rb") as stream:
        for line in stream:
            at += len(line)
            edges.append(at)
    if not at:
        raise ReperfError(f"{path}: an empty file; allowed: {LAYOUT}")
    return edges


def _lines(path: Path, offset: int, size: int) -> list[str]:
    text = read_piece(path, offset, size, LAYOUT)
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
