"""Clicks: advertisements shown, as Criteo's display advertising challenge describes them."""

from reperf.data.kind import Kind
from reperf.errors import ReperfError
from reperf.values import PlainPath


class Clicks(Kind):
    """Lines as in Criteo's train.txt."""

    formats = ("rows",)
    counted = "samples"
    embedded = last = "clicks.txt"
    embedded_bytes = 30 * 10**6  # a row has 160 bytes; a line of Criteo's has some 240
    few = "hundred thousand"
    real = "a file as Criteo's train.txt"

    clicks: PlainPath | None = None
    """file of lines as in Criteo's train.txt: label, 13 integers, 26 words of 8 hexadecimal digits,
    tabs between; left out, one is made"""

    def check(self) -> None:
        if self.clicks and not self.clicks.is_file():
            raise ReperfError(f"{self.clicks}: no such file; allowed: {self.real}")


KIND = Clicks
