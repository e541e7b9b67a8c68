"""Convert pairs to parts of ids."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reperf.data.manifest import Manifest, Written
from reperf.data.pairs.kind import LAYOUT, SOURCE, TARGET, Pairs, check_files
from reperf.data.parallel import run_parts
from reperf.data.part import Format, all_or_nothing, new_part
from reperf.data.text_files import blocks_of_lines, read_piece
from reperf.data.tokens.vocabulary import read_vocabulary
from reperf.errors import ReperfError

PIECE = 1 << 13
"""Pairs that are converted at a time."""
Ids = npt.NDArray[np.integer]


class Pair(NamedTuple):
    """The ids of both sentences, each with its end."""

    source: Ids
    target: Ids


IDS = Format[Pair](
    lambda pair: [ids.tobytes() for ids in pair],
    sidecars={".idx": lambda pair, at, _: f"{at} {len(pair.source)} {len(pair.target)}\n"},
)
"""Ids one after the other, and for each pair a line: its offset in bytes, and both lengths."""


def convert(settings: Pairs, output: Path, format_name: str, *, workers: int) -> Manifest:
    """Convert pairs to ids: part-00000 and so on, an index beside each, manifest.json.

    Each part has neighbouring pairs, as many as any other or one more.

    Raises:
        ReperfError: the vocabulary or a file is refused, a sentence is too long, there are fewer
            pairs than parts, or a file cannot be written.
    """
    assert settings.pairs
    vocabulary = read_vocabulary(settings.joint_bpe)
    lines = Lines(settings.pairs)
    if len(lines) < settings.parts:
        raise ReperfError(
            f"{settings.pairs}: has {len(lines)} pairs; allowed: one or more for each of "
            f"{settings.parts} parts"
        )

    def ids_of(path: Path, first: int, sentences: Sequence[str]) -> list[Ids]:
        """The ids of sentences, each with its end; `first` is the number of lines before them."""
        arrays = vocabulary.arrays([(sentence, True) for sentence in sentences])
        for number, ids in enumerate(arrays, first + 1):
            if len(ids) > settings.longest:
                raise ReperfError(
                    f"{path}: line {number}: has {len(ids)} tokens with its end; allowed: up to "
                    f"{settings.longest}, `longest`"
                )
        return arrays

    def write_part(part: int) -> Written:
        source_tokens = target_tokens = 0
        first, end = (len(lines) * edge // settings.parts for edge in (part, part + 1))
        with new_part(output, part, IDS) as records:
            at = first
            for piece in lines.pairs(first, end):
                sources, targets = (
                    ids_of(path, at, sentences)
                    for path, sentences in zip(lines.paths, piece, strict=True)
                )
                for pair in map(Pair, sources, targets):
                    records.append(pair)
                source_tokens += sum(map(len, sources))
                target_tokens += sum(map(len, targets))
                at += len(sources)
        return records.summary(
            pairs=end - first, source_tokens=source_tokens, target_tokens=target_tokens
        )

    with all_or_nothing(output):
        written = run_parts(write_part, settings.parts, workers, f"pairs to {format_name}")
        return settings.write_manifest(output, format_name, written, **vocabulary.described)


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

    def pairs(self, first: int, end: int) -> Iterator[tuple[list[str], ...]]:
        """The sources and the targets of pairs, from one to before another, a piece at a time.

        Raises:
            ReperfError: a file cannot be read, has changed or is not UTF-8.
        """
        for begin in range(first, end, PIECE):
            until = min(begin + PIECE, end)
            yield tuple(
                _lines(path, *edges[[begin, until]].tolist())
                for path, edges in zip(self.paths, self._edges, strict=True)
            )


def _edges(path: Path) -> npt.NDArray[np.int64]:
    """Where each line of a file begins, and where the last one ends."""
    edges: list[npt.NDArray[np.int64]] = []
    for at, block in blocks_of_lines(path):
        ends = at + 1 + np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
        if not block.endswith(b"\n"):
            ends = np.append(ends, at + len(block))
        edges += [ends] if edges else [np.array([at]), ends]
    if not edges:
        raise ReperfError(f"{path}: an empty file; allowed: {LAYOUT}")
    return np.concatenate(edges)


def _lines(path: Path, begin: int, end: int) -> list[str]:
    text = read_piece(path, begin, end - begin, LAYOUT)
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
