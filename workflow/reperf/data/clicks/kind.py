"""Clicks as a kind of data."""

from pathlib import Path

from reperf.config import Data
from reperf.data.clicks.manifest import ClickManifest, ClickSettings
from reperf.data.kind import Kind, bytes_below
from reperf.errors import ReperfError


class Clicks(Kind):
    """Advertisements shown, and whether they were clicked."""

    formats = ("rows",)
    manifest = ClickManifest
    last = "clicks.txt"
    embedded_bytes = 30 * 10**6
    few = "hundred thousand"
    real = "a file as Criteo's train.txt"
    modules = ("reperf.data.clicks.embedded", "reperf.data.clicks.convert")

    def embed(self, folder: Path) -> None:
        self.maker.make_clicks(folder / "clicks.txt")

    def check(self, data: Data) -> None:
        if data.clicks and not data.clicks.is_file():
            raise ReperfError(f"{data.clicks}: no such file; allowed: {self.real}")

    def convert(self, data: Data, folder: Path, format_name: str, workers: int) -> None:
        self.converter.convert(_settings_of(data), folder, format_name, workers=workers)

    def record_bytes(self, data: Data) -> int:
        # A row has 160 bytes; a line of Criteo's has some 240.
        return self.embedded_bytes if data.is_embedded else bytes_below(data.clicks)

    def _is_of(self, data: Data, found: ClickManifest) -> bool:
        return found.settings == _settings_of(data)


def _settings_of(data: Data) -> ClickSettings:
    return ClickSettings(clicks=str(data.source), parts=data.parts, seed=data.seed)


KIND = Clicks()
