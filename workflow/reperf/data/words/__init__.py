"""Words: text as the numbers of its frequent words, of which skip-gram pairs are made."""

from pydantic import Field

from reperf.data.kind import Kind
from reperf.values import Number, PlainPath


class Words(Kind):
    """The frequent words of a text."""

    formats = ("words",)
    counted = "words"
    embedded = last = "text.txt"
    embedded_bytes = 2 * 10**6  # an id is mostly no longer than a word with the space after it
    few = "tens of thousands of"
    real = "a file or a folder of text"

    words: PlainPath | None = None
    """file, or folder of files, of text in UTF-8, of whose words pairs are made; left out, the
    embedded text is made"""
    least_count: Number = Field(5, ge=1, le=1_000_000)
    """minimum count of a word in the vocabulary"""
    thinning: float = Field(1e-3, ge=1e-9, le=1)
    """subsampling threshold, word2vec's `sample`: a word above this share of all words is thinned
    out; 1: none is"""


KIND = Words
