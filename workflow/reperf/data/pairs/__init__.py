"""Pairs of sentences, of which one translates the other: both become ids of one vocabulary."""

from pydantic import Field

from reperf.data.byte_pairs import BYTES, digest_of_vocabulary, read_vocabulary
from reperf.data.kind import Kind
from reperf.errors import ReperfError
from reperf.files import reading
from reperf.values import Number, PlainPath

SOURCE, TARGET = "source.txt", "target.txt"
LAYOUT = f"a folder that holds {SOURCE} and {TARGET} in UTF-8, a sentence a line in both"


class Pairs(Kind):
    """A sentence and its translation."""

    formats = ("ids",)
    counted = "pairs"
    embedded = "pairs"
    last = f"pairs/{TARGET}"
    embedded_bytes = 10**7
    growth = 2  # where each byte is a token
    few = "twenty thousand"
    real = LAYOUT

    pairs: PlainPath | None = None
    """folder that holds source.txt and target.txt in UTF-8, a sentence a line, each line of the
    second the translation of the same line of the first; left out, the embedded pairs are made"""
    joint_bpe: PlainPath | None = None
    """folder that holds vocab.json and merges.txt of both languages, as GPT-2 has them; left out,
    each byte is a token"""
    longest: Number = Field(256, ge=8, le=4096)
    """tokens of the longest sentence of a pair, with its end"""

    def decided_shape(self) -> dict[str, int]:
        return {"longest": self.longest}

    def least_shape(self) -> dict[str, int]:
        # The size of a user's vocabulary is known only when it is converted.
        return {} if self.joint_bpe else {"vocabulary": BYTES}

    def least_batch(self) -> int:
        # A sample is a place for a token.
        return self.longest

    def vocabulary_digest(self) -> str | None:
        return digest_of_vocabulary(self.joint_bpe)

    def check(self) -> None:
        for path in (self.pairs / SOURCE, self.pairs / TARGET) if self.pairs else ():
            with reading(path):
                if not path.is_file():
                    raise ReperfError(f"{path}: no such file; allowed: {LAYOUT}")
        read_vocabulary(self.joint_bpe)


KIND = Pairs
