"""The keys of sets of tokens."""

from typing import ClassVar

from pydantic import Field

from reperf.config.words import PlainPath
from reperf.data.keys import KindKeys
from reperf.data.tokens.vocabulary import BYTES


class Keys(KindKeys):
    """Of tokens."""

    embedded: ClassVar[str] = "text.txt"

    tokens: PlainPath | None = Field(
        None,
        description="file, or folder of files, of text in UTF-8, which becomes tokens; left out, "
        "the embedded text is made",
    )
    bpe: PlainPath | None = Field(
        None,
        description="folder that holds vocab.json and merges.txt, as GPT-2 has them; left out, "
        "each byte is a token",
    )

    def least_shape_of(self) -> dict[str, int]:
        # How many a vocabulary of the user's own has is seen when it is converted, and read.
        return {} if self.bpe else {"vocabulary": BYTES}
