"""A stream of tokens as a kind of data."""

from reperf.config import Data
from reperf.data.kind import Kind
from reperf.data.text.corpus import check_text
from reperf.data.tokens.manifest import TokenManifest, TokenSettings
from reperf.data.tokens.stream import LAYOUT
from reperf.data.tokens.vocabulary import read_vocabulary


class Tokens(Kind):
    """Tokens, one after the other."""

    formats = ("ids",)
    manifest = TokenManifest
    settings = TokenSettings
    last = "text.txt"
    embedded_bytes = 2 * 10**6
    growth = 2  # where each byte is a token
    few = "half a million"
    real = "a file or a folder of text"
    modules = ("reperf.data.tokens.embedded", "reperf.data.tokens.convert")

    def check(self, data: Data) -> None:
        if data.tokens:
            check_text(data.tokens, LAYOUT)
        read_vocabulary(data.bpe)


KIND = Tokens()
