"""A stream of tokens as a kind of data."""

from pathlib import Path

from reperf.config import Data
from reperf.data.kind import Kind, bytes_below
from reperf.data.text.corpus import check_text
from reperf.data.tokens.manifest import TokenManifest, TokenSettings
from reperf.data.tokens.stream import LAYOUT
from reperf.data.tokens.vocabulary import read_vocabulary


class Tokens(Kind):
    """Tokens, one after the other."""

    formats = ("ids",)
    manifest = TokenManifest
    last = "text.txt"
    embedded_bytes = 2 * 10**6
    few = "half a million"
    real = "a file or a folder of text"
    modules = ("reperf.data.tokens.embedded", "reperf.data.tokens.convert")
    _RECORDS_OF_TEXT = 2  # bytes of ids for a byte of text, where each byte is a token

    def embed(self, folder: Path) -> None:
        self.maker.make_text(folder / "text.txt")

    def check(self, data: Data) -> None:
        if data.tokens:
            check_text(data.tokens, LAYOUT)
        read_vocabulary(data.bpe)

    def convert(self, data: Data, folder: Path, format_name: str, workers: int) -> None:
        self.converter.convert(_settings_of(data), folder, format_name, workers=workers)

    def record_bytes(self, data: Data) -> int:
        if data.is_embedded:
            return self.embedded_bytes
        return bytes_below(data.tokens) * self._RECORDS_OF_TEXT

    def _is_of(self, data: Data, found: TokenManifest) -> bool:
        return found.is_of(_settings_of(data))


def _settings_of(data: Data) -> TokenSettings:
    bpe = str(data.bpe) if data.bpe else None
    return TokenSettings(tokens=str(data.source), bpe=bpe, parts=data.parts, seed=data.seed)


KIND = Tokens()
