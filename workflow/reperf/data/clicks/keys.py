"""The keys of sets of clicks."""

from typing import ClassVar

from pydantic import Field

from reperf.config.words import PlainPath
from reperf.data.keys import KindKeys


class Keys(KindKeys):
    """Of clicks."""

    embedded: ClassVar[str] = "clicks.txt"

    clicks: PlainPath | None = Field(
        None,
        description="file of lines as in Criteo's train.txt: label, 13 integers, 26 words of 8 "
        "hexadecimal digits, tabs between; left out, one is made",
    )
