"""Convert text to parts of ids."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from reperf.data.framing import index_line
from reperf.data.manifest import Manifest, Written
from reperf.data.parallel import run_parts
from reperf.data.part import Format, all_or_nothing, new_part
from reperf.data.text_files import END, UTF8, Pieces
from reperf.data.tokens.kind import Tokens
from reperf.data.tokens.vocabulary import read_vocabulary
from reperf.errors import ReperfError

LAYOUT = f"{UTF8}, with a line {END} between documents"

IDS = Format[npt.NDArray[np.integer]](lambda ids: [ids.tobytes()], sidecars={".idx": index_line})
"""Ids one after the other, and an index with a line for each document, or each piece of one."""


def convert(settings: Tokens, output: Path, format_name: str, *, workers: int) -> Manifest:
    """Convert text to ids: part-00000 and so on, an index beside each, manifest.json.

    The text is cut into pieces of lines, a megabyte each, of which each part has neighbouring ones.

    Raises:
        ReperfError: the vocabulary or the text is refused, there is too little text for the parts,
            or a file cannot be written.
    """
    assert settings.tokens
    vocabulary = read_vocabulary(settings.bpe)
    text = Pieces(settings.tokens, settings.parts, LAYOUT)

    def write_part(part: int) -> Written:
        tokens = ended = 0
        with new_part(output, part, IDS) as records:
            for number in text.of_part(part):
                documents = text.documents(number)
                for ids, (_, ends) in zip(vocabulary.arrays(documents), documents, strict=True):
                    records.append(ids)
                    tokens += len(ids)
                    ended += ends
        if not tokens:
            raise ReperfError(
                f"{settings.tokens}: part {part} of {settings.parts} would hold no text; "
                "allowed: at least a line for each part"
            )
        return records.summary(documents=ended, tokens=tokens)

    with all_or_nothing(output):
        written = run_parts(write_part, settings.parts, workers, f"text to {format_name}")
        return settings.write_manifest(output, format_name, written, **vocabulary.described)
