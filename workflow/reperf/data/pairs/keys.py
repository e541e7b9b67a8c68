"""The keys of sets of pairs."""

from typing import ClassVar

from pydantic import Field

from reperf.config.words import Number, PlainPath
from reperf.data.keys import KindKeys
from reperf.data.tokens.vocabulary import BYTES


class Keys(KindKeys):
    """Of pairs."""

    embedded: ClassVar[str] = "pairs"

    pairs: PlainPath | None = Field(
        None,
        description="folder that holds source.txt and target.txt in UTF-8, a sentence a line, each "
        "line of the second the translation of the same line of the first; left out, the embedded "
        "pairs are made",
    )
    joint_bpe: PlainPath | None = Field(
        None,
        description="folder that holds vocab.json and merges.txt of both languages, as GPT-2 has "
        "them; left out, each byte is a token",
    )
    longest: Number = Field(
        256, ge=8, le=4096, description="tokens of the longest sentence of a pair, with its end"
    )

    def shape_of(self) -> dict[str, int]:
        return {"longest": self.longest}

    def least_shape_of(self) -> dict[str, int]:
        # How many a vocabulary of the user's own has is seen when it is converted, and read.
        return {} if self.joint_bpe else {"vocabulary": BYTES}

    def least_batch_of(self) -> int:
        # A sample is a place for a token.
        return self.longest
