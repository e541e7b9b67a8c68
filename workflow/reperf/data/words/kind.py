"""Words as a kind of data."""

from pathlib import Path

from reperf.config import Data
from reperf.data.kind import Kind, bytes_below
from reperf.data.text.corpus import UTF8, check_text
from reperf.data.words.manifest import WordManifest, WordSettings


class Words(Kind):
    """The frequent words of a text."""

    formats = ("words",)
    manifest = WordManifest
    last = "text.txt"
    embedded_bytes = 2 * 10**6
    few = "tens of thousands of"
    real = "a file or a folder of text"
    modules = ("reperf.data.tokens.embedded", "reperf.data.words.convert")

    def embed(self, folder: Path) -> None:
        self.maker.make_text(folder / "text.txt")

    def check(self, data: Data) -> None:
        if data.words:
            check_text(data.words, UTF8)

    def convert(self, data: Data, folder: Path, format_name: str, workers: int) -> None:
        self.converter.convert(_settings_of(data), folder, format_name, workers=workers)

    def record_bytes(self, data: Data) -> int:
        # An id is no longer than a word with the space behind it, most of the time.
        return self.embedded_bytes if data.is_embedded else bytes_below(data.words)

    def _is_of(self, data: Data, found: WordManifest) -> bool:
        return found.settings == _settings_of(data)


def _settings_of(data: Data) -> WordSettings:
    return WordSettings(
        words=str(data.source),
        least_count=data.least_count,
        thinning=data.thinning,
        parts=data.parts,
        seed=data.seed,
    )


KIND = Words()
