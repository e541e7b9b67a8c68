"""Convert pairs to parts of ids: the one call behind the rule."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reperf.data.bar import progress
from reperf.data.pairs.lines import Lines
from reperf.data.pairs.manifest import PairManifest, PairSettings
from reperf.data.parallel import Tick, run_parts
from reperf.data.part import Format, Written, all_or_nothing, new_part
from reperf.data.tokens.convert import arrays_of
from reperf.data.tokens.vocabulary import read_vocabulary
from reperf.errors import ReperfError


class Pair(NamedTuple):
    """The ids of both sentences, each with its end."""

    source: np.ndarray
    target: np.ndarray


IDS = Format[Pair](
    lambda pair: [one.tobytes() for one in pair],
    sidecars={".idx": lambda pair, at, _: f"{at} {len(pair.source)} {len(pair.target)}\n"},
)
"""Ids one after the other, and for each pair a line: its offset in bytes, and both lengths."""


def convert(
    settings: PairSettings, output: Path, format_name: str, *, workers: int
) -> PairManifest:
    """Convert pairs to ids: part-00000 and so on, an index beside each, manifest.json.

    Each part has neighbouring pairs, as many as any other or one more. The bytes depend on the
    pairs, the vocabulary and the number of parts, not on the number of workers. What an earlier
    conversion left in the folder is removed.

    Raises:
        ReperfError: the vocabulary or a file is refused, a sentence is too long, there are fewer
            pairs than parts, or a file cannot be written.
    """
    vocabulary = read_vocabulary(Path(settings.joint_bpe) if settings.joint_bpe else None)
    lines = Lines(Path(settings.pairs))
    if len(lines) < settings.parts:
        raise ReperfError(
            f"{settings.pairs}: has {len(lines)} pairs; allowed: one or more for each of "
            f"{settings.parts} parts"
        )

    def ids_of(path: Path, first: int, sentences: Sequence[str]) -> list[np.ndarray]:
        """The ids of sentences, each with its end; `first` is the number of lines before them."""
        found = arrays_of(vocabulary, [(sentence, True) for sentence in sentences])
        for number, ids in enumerate(found, first + 1):
            if len(ids) > settings.longest:
                raise ReperfError(
                    f"{path}: line {number}: has {len(ids)} tokens with its end; allowed: up to "
                    f"{settings.longest}, `longest`"
                )
        return found

    def write_part(part: int, tick: Tick) -> Written:
        source_tokens = target_tokens = 0
        first, end = (len(lines) * one // settings.parts for one in (part, part + 1))
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
                tick(len(sources))
        return records.summary(
            pairs=end - first, source_tokens=source_tokens, target_tokens=target_tokens
        )

    with all_or_nothing(output):
        with progress(f"pairs to {format_name}", len(lines)) as watch:
            written = run_parts(write_part, settings.parts, workers, watch)
        return PairManifest.of_parts(
            output, written, format=format_name, settings=settings, **vocabulary.described
        )
