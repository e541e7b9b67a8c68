"""Sentences as a kind of data."""

from pathlib import Path

from reperf.config import Data
from reperf.data.kind import Kind, bytes_below
from reperf.data.text.corpus import check_text
from reperf.data.text.manifest import TextManifest
from reperf.data.text.settings import TextSettings
from reperf.data.text.vocab_file import read_vocabulary


class Text(Kind):
    """Sentences."""

    formats = ("tfrecord", "ofrecord")
    manifest = TextManifest
    last = "text.txt"
    embedded_bytes = 3 * 10**6
    few = "thousand"
    real = "a file or a folder with a sentence a line"
    modules = ("reperf.data.text.embedded_text", "reperf.data.text.convert_text")
    _RECORDS_OF_TEXT = 2  # bytes of records for a byte of text, per pass

    def embed(self, folder: Path) -> None:
        self.maker.make_text(folder / "text.txt")

    def check(self, data: Data) -> None:
        if data.text:
            check_text(data.text)
        if data.vocabulary:
            read_vocabulary(data.vocabulary, data.vocabulary_size)

    def convert(self, data: Data, folder: Path, format_name: str, workers: int) -> None:
        self.converter.convert(_settings_of(data), folder, format_name, workers=workers)

    def record_bytes(self, data: Data) -> int:
        """From the size of all files, of which text has few."""
        if data.is_embedded:
            return self.embedded_bytes * data.passes
        return bytes_below(data.text) * self._RECORDS_OF_TEXT * data.passes

    def _is_of(self, data: Data, found: TextManifest) -> bool:
        return found.is_of(_settings_of(data))


def _settings_of(data: Data) -> TextSettings:
    """All that decides the records of a text."""
    paths = {
        "text": str(data.source),
        "vocabulary": str(data.vocabulary) if data.vocabulary else None,
    }
    others = data.model_dump(include=TextSettings.model_fields.keys() - paths)
    return TextSettings(**paths, **others)


KIND = Text()
