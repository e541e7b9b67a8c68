"""A stream of tokens as a kind of data."""

from typing import Any

from pydantic import Field

from reperf.data.kind import Kind
from reperf.data.tokens.vocabulary import BYTES, digest_of_vocabulary, read_vocabulary
from reperf.values import PlainPath


class Tokens(Kind):
    """Tokens, one after the other."""

    formats = ("ids",)
    counted = "tokens"
    embedded = last = "text.txt"
    embedded_bytes = 2 * 10**6
    growth = 2  # where each byte is a token
    few = "half a million"
    real = "a file or a folder of text"
    modules = ("reperf.data.tokens.embedded", "reperf.data.tokens.convert")

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
        # The size of a user's vocabulary is known only when it is converted.
        return {} if self.bpe else {"vocabulary": BYTES}

    def vocabulary_digest(self) -> str | None:
        return digest_of_vocabulary(self.bpe)

    @classmethod
    def check(cls, data: Any) -> None:  # noqa: ANN401 - a set of the configuration
        super().check(data)
        read_vocabulary(data.bpe)


KIND = Tokens
