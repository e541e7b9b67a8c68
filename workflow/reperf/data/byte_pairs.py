"""What ids stand for: bytes, or the byte pairs of a user's vocabulary.

Plans ask for vocabularies, so numpy and tokenizers are imported only where they are called.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reperf.data.text_files import END
from reperf.errors import ReperfError
from reperf.files import reading

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

BYTES = 257  # ids in the vocabulary of bytes; the last one ends a document
FILES = ("vocab.json", "merges.txt")
LAYOUT = f"a folder that holds {' and '.join(FILES)}, as GPT-2 has them"
MOST_OF_UINT16 = 1 << 16
ALPHABET = 256  # one-byte tokens that a vocabulary needs: if one were missing, text would be lost


@dataclass(frozen=True)
class Vocabulary:
    """Turns documents into ids."""

    size: int = BYTES  # ids are below it
    end: int = BYTES - 1  # the id that ends a document
    digest: str | None = None  # SHA-256 of the files that gave it; None for bytes
    encoder: Any = None  # a tokenizers.Tokenizer; None for bytes

    @property
    def type(self) -> str:
        """The numpy type of an id in a file, whose lowest byte comes first."""
        return "uint16" if self.size <= MOST_OF_UINT16 else "uint32"

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the vocabulary in the manifest of a set of its ids."""
        return {
            "type": self.type,
            "vocabulary": self.size,
            "vocabulary_sha256": self.digest,
            "end": self.end,
        }

    def arrays(self, documents: Sequence[tuple[str, bool]]) -> "list[npt.NDArray[np.integer]]":
        """The ids of each document, [its tokens]; where its flag says so, the end's id follows."""
        import numpy as np  # noqa: PLC0415

        number_type = np.dtype(self.type).newbyteorder("<")
        end = np.array([self.end], number_type)

        def ids_of(text: str) -> "npt.NDArray[np.integer]":
            if self.encoder is None:
                return np.frombuffer(text.encode(), np.uint8).astype(number_type)
            return np.array(self.encoder.encode(text).ids, number_type)

        return [np.concatenate([ids_of(text), end[: int(ends)]]) for text, ends in documents]


def read_vocabulary(folder: Path | None) -> Vocabulary:
    """The vocabulary of bytes, or that in a folder, which must be able to encode all text."""
    if folder is None:
        return Vocabulary()
    import tokenizers  # noqa: PLC0415

    known, merges = (folder / name for name in FILES)
    for path in (known, merges):
        if not path.is_file():
            raise ReperfError(f"{path}: no such file; allowed: {LAYOUT}")
    ids = _ids_in(known)
    try:
        model = tokenizers.models.BPE.from_file(str(known), str(merges))
    except Exception as error:  # the library raises no other class
        raise ReperfError(
            f"{merges}: {error}; allowed: in each line two tokens of {FILES[0]} that make a third"
        ) from None
    encoder = tokenizers.Tokenizer(model)
    encoder.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return Vocabulary(len(ids), ids[END], digest_of_vocabulary(folder), encoder)


def digest_of_vocabulary(folder: Path | None) -> str | None:
    """The SHA-256 of both files of a folder's vocabulary; None if they are not there."""
    paths = [folder / name for name in FILES] if folder else []
    if not paths or not all(path.is_file() for path in paths):
        return None
    return sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def _ids_in(path: Path) -> dict[str, int]:
    try:
        with reading(path):
            ids: dict[str, int] = json.loads(path.read_bytes())
        good = sorted(ids.values()) == list(range(len(ids)))
    except (ValueError, RecursionError, AttributeError, TypeError):
        good = False
    if not good:
        raise ReperfError(
            f"{path}: is not a vocabulary; allowed: JSON of tokens and their ids, 0, 1, 2 and so on"
        )
    if END not in ids:
        raise ReperfError(f"{path}: has no {END}; allowed: a vocabulary with it")
    if missing := ALPHABET - sum(len(token) == 1 for token in ids):
        raise ReperfError(
            f"{path}: lacks {missing} of the {ALPHABET} tokens of one byte; allowed: a byte-level "
            "vocabulary, such as GPT-2's"
        )
    return ids
