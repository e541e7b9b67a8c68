"""The keys of sets of tokens."""

from typing import Any, ClassVar

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

    @classmethod
    def least_shape_of(cls, data: Any) -> dict[str, int]:  # noqa: ANN401 - a Data, whose keys they are
        # How many a vocabulary of the user's own has is seen when it is converted, and read.
        return {} if data.bpe else {"vocabulary": BYTES}
