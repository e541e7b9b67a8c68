"""Pairs of sentences as a kind of data."""

from reperf.config import Data
from reperf.data.kind import Kind
from reperf.data.pairs.lines import LAYOUT, check_files
from reperf.data.pairs.manifest import PairManifest, PairSettings
from reperf.data.tokens.vocabulary import read_vocabulary


class Pairs(Kind):
    """A sentence and its translation."""

    formats = ("ids",)
    manifest = PairManifest
    settings = PairSettings
    last = "pairs/target.txt"
    embedded_bytes = 10**7
    growth = 2  # where each byte is a token
    few = "twenty thousand"
    real = LAYOUT
    modules = ("reperf.data.pairs.embedded", "reperf.data.pairs.convert")

    def check(self, data: Data) -> None:
        if data.pairs:
            check_files(data.pairs)
        read_vocabulary(data.joint_bpe)


KIND = Pairs()
