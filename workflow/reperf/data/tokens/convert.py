"""Tokens: the embedded text, and how text becomes parts of ids."""

from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import numpy.typing as npt

from reperf.data.byte_pairs import read_vocabulary
from reperf.data.conversion import Conversion, Counts, Format, PartWriter
from reperf.data.text_files import END, UTF8, Pieces
from reperf.data.tokens import Tokens
from reperf.data.wire import index_line
from reperf.files import write_whole

Ids = npt.NDArray[np.integer]
IDS = Format[Ids](lambda ids: [ids.tobytes()], sidecars={".idx": index_line})
"""Ids one after the other, and an index with a line for each document, or each piece of one."""


def make(path: Path) -> None:
    """Write the embedded text: what Python's own help says about the language, topic by topic.

    It comes with every Python, under its licence; the bytes depend on the version of Python.
    """
    write_whole(path, f"{END}\n".join(topic.rstrip() + "\n" for _, topic in sorted(topics.items())))


def conversion(settings: Tokens, _format_name: str, _workers: int) -> Conversion[Ids]:
    """Convert text to ids.

    The text is cut into pieces of lines, a megabyte each, of which each part has neighbouring ones.
    """
    vocabulary = read_vocabulary(settings.bpe)
    text = Pieces(settings.source, settings.parts, f"{UTF8}, with a line {END} between documents")

    def fill(part: int, records: PartWriter[Ids]) -> Counts:
        tokens = ended = 0
        for number in text.of_part(part):
            documents = text.documents(number)
            for ids, (_, ends) in zip(vocabulary.arrays(documents), documents, strict=True):
                records.append(ids)
                tokens += len(ids)
                ended += ends
        return {"documents": ended, "tokens": tokens}

    refusal = "no text; allowed: at least a line for each part"
    return Conversion(IDS, fill, refusal, vocabulary.fields)
