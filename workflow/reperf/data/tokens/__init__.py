"""Tokens: text becomes ids, one after the other, of bytes or by the user's byte-pair encoding."""

from reperf.data.byte_pairs import BYTES, digest_of_vocabulary, read_vocabulary
from reperf.data.kind import Kind
from reperf.values import PlainPath


class Tokens(Kind):
    """A stream of tokens."""

    formats = ("ids",)
    counted = "tokens"
    embedded = last = "text.txt"
    embedded_bytes = 2 * 10**6
    growth = 2  # where each byte is a token
    few = "half a million"
    real = "a file or a folder of text"

    tokens: PlainPath | None = None
    """file, or folder of files, of text in UTF-8, which becomes tokens; left out, the embedded text
    is made"""
    bpe: PlainPath | None = None
    """folder that holds vocab.json and merges.txt, as GPT-2 has them; left out, each byte is a
    token"""

    def least_shape(self) -> dict[str, int]:
        # The size of a user's vocabulary is known only when it is converted.
        return {} if self.bpe else {"vocabulary": BYTES}

    def vocabulary_digest(self) -> str | None:
        return digest_of_vocabulary(self.bpe)

    def check(self) -> None:
        super().check()
        read_vocabulary(self.bpe)


KIND = Tokens
