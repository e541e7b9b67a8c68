"""Pairs of sentences as a kind of data."""

from pathlib import Path

from reperf.config import Data
from reperf.data.kind import Kind, bytes_below
from reperf.data.pairs.lines import LAYOUT, check_files
from reperf.data.pairs.manifest import PairManifest, PairSettings
from reperf.data.tokens.vocabulary import read_vocabulary


class Pairs(Kind):
    """A sentence and its translation."""

    formats = ("ids",)
    manifest = PairManifest
    last = "pairs/target.txt"
    embedded_bytes = 10**7
    few = "twenty thousand"
    real = LAYOUT
    modules = ("reperf.data.pairs.embedded", "reperf.data.pairs.convert")
    _RECORDS_OF_TEXT = 2  # bytes of ids for a byte of text, where each byte is a token

    def embed(self, folder: Path) -> None:
        self.maker.make_pairs(folder / "pairs")

    def check(self, data: Data) -> None:
        if data.pairs:
            check_files(data.pairs)
        read_vocabulary(data.joint_bpe)

    def convert(self, data: Data, folder: Path, format_name: str, workers: int) -> None:
        self.converter.convert(_settings_of(data), folder, format_name, workers=workers)

    def record_bytes(self, data: Data) -> int:
        if data.is_embedded:
            return self.embedded_bytes
        return bytes_below(data.pairs) * self._RECORDS_OF_TEXT

    def _is_of(self, data: Data, found: PairManifest) -> bool:
        return found.is_of(_settings_of(data))


def _settings_of(data: Data) -> PairSettings:
    return PairSettings(
        pairs=str(data.source),
        joint_bpe=str(data.joint_bpe) if data.joint_bpe else None,
        **data.model_dump(include={"longest", "parts", "seed"}),
    )


KIND = Pairs()
