"""Convert text to parts of ids: the one call behind the rule."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reperf.data.bar import progress
from reperf.data.framing import index_line
from reperf.data.parallel import Tick, run_parts
from reperf.data.part import Format, Written, all_or_nothing, new_part
from reperf.data.tokens.manifest import TokenManifest, TokenSettings
from reperf.data.tokens.stream import Stream
from reperf.data.tokens.vocabulary import Vocabulary, read_vocabulary
from reperf.errors import ReperfError

IDS = Format[np.ndarray](lambda ids: [ids.tobytes()], sidecars={".idx": index_line})
"""Ids one after the other, and an index with a line for each document, or each piece of one."""


def convert(
    settings: TokenSettings, output: Path, format_name: str, *, workers: int
) -> TokenManifest:
    """Convert text to ids: part-00000 and so on, an index beside each, manifest.json.

    The text is cut into pieces of lines, a megabyte each, of which each part has neighbouring ones.
    The bytes depend on the text, the vocabulary and the number of parts, not on the number of
    workers. What an earlier conversion left in the folder is removed.

    Raises:
        ReperfError: the vocabulary or the text is refused, there is too little text for the parts,
            or a file cannot be written.
    """
    vocabulary = read_vocabulary(Path(settings.bpe) if settings.bpe else None)
    stream = Stream(Path(settings.tokens), settings.parts)

    def write_part(part: int, tick: Tick) -> Written:
        tokens = ended = 0
        with new_part(output, part, IDS) as records:
            for number in stream.of_part(part):
                documents = list(stream.piece(number))
                for ids, (_, ends) in zip(arrays_of(vocabulary, documents), documents, strict=True):
                    records.append(ids)
                    tokens += len(ids)
                    ended += ends
                tick()
        if not tokens:
            raise ReperfError(
                f"{settings.tokens}: part {part} of {settings.parts} would hold no text; "
                "allowed: at least a line for each part"
            )
        return records.summary(documents=ended, tokens=tokens)

    with all_or_nothing(output):
        with progress(f"pieces of text to {format_name}", stream.pieces) as watch:
            written = run_parts(write_part, settings.parts, workers, watch)
        return TokenManifest.of_parts(
            output, written, format=format_name, settings=settings, **vocabulary.described
        )


def arrays_of(vocabulary: Vocabulary, documents: Sequence[tuple[str, bool]]) -> list[np.ndarray]:
    """The ids of documents.

    Args:
        documents: the text of each, and whether the vocabulary's end comes behind it.
    """
    number_type = np.dtype(vocabulary.type).newbyteorder("<")
    end = np.array([vocabulary.end], number_type)
    found = vocabulary.ids([text for text, _ in documents])
    return [
        np.concatenate([_array(ids, number_type), end[: int(ends)]])
        for ids, (_, ends) in zip(found, documents, strict=True)
    ]


def _array(ids: bytes | Sequence[int], number_type: np.dtype) -> np.ndarray:
    if isinstance(ids, bytes):
        return np.frombuffer(ids, np.uint8).astype(number_type)
    return np.array(ids, number_type)
