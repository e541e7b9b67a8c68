"""What ids stand for: bytes, or the byte pairs of a user's vocabulary.

Plans ask it, so the library that encodes is imported only where it is called.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from reperf.errors import ReperfError
from reperf.files import reading

END = "<|endoftext|>"
"""What ends a document: in files a line of its own, in a vocabulary a token."""
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
    def type(self) -> Literal["uint16", "uint32"]:
        """Of an id in a file, the lowest byte first."""
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

    def ids(self, documents: Sequence[str]) -> Iterator[bytes | Sequence[int]]:
        """The ids of each document, without the one that ends it."""
        if self._files is None:
            return (document.encode() for document in documents)
        return (self._encoder.encode(document).ids for document in documents)

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
    return Vocabulary(len(ids), ids[END], digest_of_files(known, merges), (known, merges))


def digest_of_files(known: bytes, merges: bytes) -> str:
    """The SHA-256 of a vocabulary's two files."""
    return sha256(known + merges).hexdigest()


def is_still(folder: str | None, digest: str | None) -> bool:
    """Whether the vocabulary in a folder, if it is still there, has a digest; bytes have None."""
    given = [Path(folder, name) for name in FILES] if folder else []
    if not given or not all(path.is_file() for path in given):
        return True
    return digest_of_files(*(path.read_bytes() for path in given)) == digest


def _content(path: Path) -> bytes:
    with reading(path):
        if not path.is_file():
            raise ReperfError(f"{path}: no such file; allowed: {LAYOUT}")
        with path.open("rb") as stream:
            return stream.read(LARGEST_FILE)


def _ids_in(path: Path, content: bytes) -> dict[str, int]:
    try:
        ids = json.loads(content)
    except (ValueError, RecursionError):
        raise ReperfError(f"{path}: is no JSON; allowed: tokens and their ids") from None
    if not isinstance(ids, dict) or not all(type(one) is int and one >= 0 for one in ids.values()):
        raise ReperfError(f"{path}: is no vocabulary; allowed: tokens and their ids")
    if len(set(ids.values())) < len(ids):
        raise ReperfError(f"{path}: an id has several tokens; allowed: one")
    if len(ids) <= max(ids.values(), default=0):
        raise ReperfError(
            f"{path}: has {len(ids)} tokens and the id {max(ids.values())}; "
            "allowed: all ids from 0 on"
        )
    if END not in ids:
        raise ReperfError(f"{path}: has no {END}; allowed: a vocabulary with it")
    return ids


def _merges_in(content: bytes) -> list[str]:
    lines = content.decode().split("\n")
    first = 1 if lines[0].startswith("#version") else 0
    return [line for line in lines[first:] if line]


def _check_merges(path: Path, content: bytes, ids: dict[str, int]) -> None:
    """Refuse what the library would, and what would lose text."""
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
