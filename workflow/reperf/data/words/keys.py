"""The keys of sets of words."""

from typing import ClassVar

from pydantic import Field

from reperf.config.words import Number, PlainPath
from reperf.data.keys import KindKeys


class Keys(KindKeys):
    """Of words."""

    embedded: ClassVar[str] = "text.txt"

    words: PlainPath | None = Field(
        None,
        description="file, or folder of files, of text in UTF-8, of whose words pairs are made; "
        "left out, the embedded text is made",
    )
    least_count: Number = Field(
        5, ge=1, le=1_000_000, description="how often a word must be there to be in the vocabulary"
    )
    thinning: float = Field(
        1e-3,
        ge=1e-9,
        le=1,
        description="share of all words above which a word is thinned out; 1: none is",
    )
