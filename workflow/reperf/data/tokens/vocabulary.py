"""What ids stand for: bytes, or the byte pairs of a user's vocabulary.

Plans ask it, so the libraries that encode are imported only where they are called.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reperf.data.text_files import END
from reperf.errors import ReperfError
from reperf.files import reading

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

BYTES = 257
"""Ids of the vocabulary of bytes, the last of which ends a document."""
FILES = ("vocab.json", "merges.txt")
LAYOUT = f"a folder that holds {' and '.join(FILES)}, as GPT-2 has them"
LARGEST_FILE = 1 << 28  # bytes
MOST_OF_UINT16 = 1 << 16
ALPHABET = 256
"""Tokens of one byte that a vocabulary needs: without one of them text would be lost."""


@dataclass(frozen=True)
class Vocabulary:
    """Turns documents into ids.

    Attributes:
        size: ids are below it.
        end: the id that ends a document.
        digest: SHA-256 of the files that gave it; None for bytes.
    """

    size: int = BYTES
    end: int = BYTES - 1
    digest: str | None = None
    _files: tuple[bytes, bytes] | None = None

    @property
    def type(self) -> str:
        """The numpy type of an id in a file, whose lowest byte comes first."""
        return "uint16" if self.size <= MOST_OF_UINT16 else "uint32"

    @property
    def described(self) -> dict[str, Any]:
        """What the manifest of a set of its ids says of it."""
        return {
            "type": self.type,
            "vocabulary": self.size,
            "vocabulary_sha256": self.digest,
            "end": self.end,
        }

    def arrays(self, documents: Sequence[tuple[str, bool]]) -> "list[npt.NDArray[np.integer]]":
        """The ids of each document, [its tokens], of the type `type`.

        Args:
            documents: the text of each, and whether the id that ends a document follows it.
        """
        import numpy as np  # noqa: PLC0415

        number_type = np.dtype(self.type).newbyteorder("<")
        end = np.array([self.end], number_type)

        def ids_of(text: str) -> "npt.NDArray[np.integer]":
            if self._files is None:
                return np.frombuffer(text.encode(), np.uint8).astype(number_type)
            return np.array(self._encoder.encode(text).ids, number_type)

        return [np.concatenate([ids_of(text), end[: int(ends)]]) for text, ends in documents]

    @cached_property
    def _encoder(self) -> Any:  # noqa: ANN401 - of a library that is imported only now
        import tokenizers  # noqa: PLC0415

        assert self._files
        known, merges = self._files
        pairs: Any = [tuple(line.split(" ")) for line in _merges_in(merges)]
        encoder = tokenizers.Tokenizer(tokenizers.models.BPE(json.loads(known), pairs))
        encoder.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        return encoder


def read_vocabulary(folder: Path | None) -> Vocabulary:
    """The vocabulary of bytes, or the one that lies in a folder.

    Raises:
        ReperfError: the folder holds none, or one that cannot encode all text.
    """
    if folder is None:
        return Vocabulary()
    known, merges = (_content(folder / name) for name in FILES)
    ids = _ids_in(folder / FILES[0], known)
    _check_merges(folder / FILES[1], merges, ids)
    return Vocabulary(len(ids), ids[END], sha256(known + merges).hexdigest(), (known, merges))


def digest_of_vocabulary(folder: Path | None) -> str | None:
    """The SHA-256 of both files of a folder's vocabulary; None if they are not there."""
    paths = [Path(folder, name) for name in FILES] if folder else []
    if not paths or not all(path.is_file() for path in paths):
        return None
    return sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def _content(path: Path) -> bytes:
    with reading(path):
        if not path.is_file():
            raise ReperfError(f"{path}: no such file; allowed: {LAYOUT}")
        with path.open("rb") as stream:
            return stream.read(LARGEST_FILE)


def _ids_in(path: Path, content: bytes) -> dict[str, int]:
    try:
        ids: dict[str, int] = json.loads(content)
        good = sorted(ids.values()) == list(range(len(ids)))
    except (ValueError, RecursionError, AttributeError, TypeError):
        good = False
    if not good:
        raise ReperfError(
            f"{path}: is not a vocabulary; allowed: JSON of tokens and their ids, 0, 1, 2 and so on"
        )
    if END not in ids:
        raise ReperfError(f"{path}: has no {END}; allowed: a vocabulary with it")
    return ids


def _merges_in(content: bytes) -> list[str]:
    lines = content.decode().split("\n")
    first = 1 if lines[0].startswith("#version") else 0
    return [line for line in lines[first:] if line]


def _check_merges(path: Path, content: bytes, ids: dict[str, int]) -> None:
    """Refuse what the library would refuse, and what would lose text."""
    try:
        merges = _merges_in(content)
    except UnicodeDecodeError as error:
        raise ReperfError(f"{path}: byte {error.start}: allowed: text in UTF-8") from None
    for line in merges:
        pair = line.split(" ")
        if len(pair) != 2 or not {*pair, "".join(pair)} <= ids.keys():
            raise ReperfError(
                f"{path}: got {line!r}; allowed: two tokens of {FILES[0]} that make a third"
            )
    if lacking := ALPHABET - sum(len(token) == 1 for token in ids):
        raise ReperfError(
            f"{path.with_name(FILES[0])}: lacks {lacking} of the {ALPHABET} tokens of one byte; "
            "allowed: a byte-level vocabulary, such as GPT-2's"
        )
