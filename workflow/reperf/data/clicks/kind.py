"""Clicks as a kind of data."""

from reperf.config import Data
from reperf.data.clicks.manifest import ClickManifest, ClickSettings
from reperf.data.kind import Kind
from reperf.errors import ReperfError


class Clicks(Kind):
    """Advertisements shown, and whether they were clicked."""

    formats = ("rows",)
    manifest = ClickManifest
    settings = ClickSettings
    last = "clicks.txt"
    embedded_bytes = 30 * 10**6  # a row has 160 bytes; a line of Criteo's has some 240
    few = "hundred thousand"
    real = "a file as Criteo's train.txt"
    modules = ("reperf.data.clicks.embedded", "reperf.data.clicks.convert")

    def check(self, data: Data) -> None:
        if data.clicks and not data.clicks.is_file():
            raise ReperfError(f"{data.clicks}: no such file; allowed: {self.real}")


KIND = Clicks()
