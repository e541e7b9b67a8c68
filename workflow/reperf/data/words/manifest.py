"""manifest.json of converted words."""

from pydantic import Field

from reperf.data.manifest import AnyManifest, AnyPart
from reperf.faults import Model


class WordSettings(Model):
    """How text becomes words, and into how many parts they go."""

    words: str = Field(description="the file or folder of the text")
    least_count: int = Field(description="of a word in the vocabulary")
    thinning: float = Field(description="share of all words above which a word is thinned out")
    parts: int = Field(description="files of ids")
    seed: int = Field(description="of what is thinned out, and of the pairs that are read")


class WordManifest(AnyManifest):
    """Converted words; vocab.txt beside it has a line for each id, from 0: the word, its count."""

    counted = "words"

    settings: WordSettings
    vocabulary: int = Field(description="ids of words are below it; it is itself the end of a line")
    words_read: int = Field(description="of the whole text")
    words_known: int = Field(description="of them, those in the vocabulary")
    words: int = Field(description="of them, those that are left after thinning")
    bytes: int = Field(description="of all parts")
    parts: list[AnyPart]
