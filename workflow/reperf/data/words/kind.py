"""Words as a kind of data."""

from reperf.config import Data
from reperf.data.kind import Kind
from reperf.data.text.corpus import UTF8, check_text
from reperf.data.words.manifest import WordManifest, WordSettings


class Words(Kind):
    """The frequent words of a text."""

    formats = ("words",)
    manifest = WordManifest
    settings = WordSettings
    last = "text.txt"
    embedded_bytes = 2 * 10**6  # an id is mostly no longer than a word with the space behind it
    few = "tens of thousands of"
    real = "a file or a folder of text"
    modules = ("reperf.data.tokens.embedded", "reperf.data.words.convert")

    def check(self, data: Data) -> None:
        if data.words:
            check_text(data.words, UTF8)


KIND = Words()
