"""Sentences as a kind of data."""

from reperf.config import Data
from reperf.data.kind import Kind
from reperf.data.text.corpus import check_text
from reperf.data.text.manifest import TextManifest
from reperf.data.text.settings import TextSettings
from reperf.data.text.vocab_file import read_vocabulary


class Text(Kind):
    """Sentences."""

    formats = ("tfrecord", "ofrecord")
    manifest = TextManifest
    settings = TextSettings
    last = "text.txt"
    embedded_bytes = 3 * 10**6
    growth = 2
    few = "thousand"
    real = "a file or a folder with a sentence a line"
    modules = ("reperf.data.text.embedded_text", "reperf.data.text.convert_text")

    def check(self, data: Data) -> None:
        if data.text:
            check_text(data.text)
        if data.vocabulary:
            read_vocabulary(data.vocabulary, data.vocabulary_size)

    def record_bytes(self, data: Data) -> int:
        return data.passes * super().record_bytes(data)


KIND = Text()
