"""Clicks as a kind of data: advertisements shown, and whether they were clicked."""

from typing import Any

from pydantic import Field

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
    modules = ("reperf.data.clicks.embedded", "reperf.data.clicks.convert")

    clicks: PlainPath | None = Field(
        None,
        description="file of lines as in Criteo's train.txt: label, 13 integers, 26 words of 8 "
        "hexadecimal digits, tabs between; left out, one is made",
    )

    @classmethod
    def check(cls, data: Any) -> None:  # noqa: ANN401 - a set of the configuration
        if data.clicks and not data.clicks.is_file():
            raise ReperfError(f"{data.clicks}: no such file; allowed: {cls.real}")


KIND = Clicks
