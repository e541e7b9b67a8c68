"""manifest.json of a converted text."""

from pathlib import Path

from pydantic import Field

from reperf.data.manifest import AnyManifest, AnyPart
from reperf.data.text.settings import TextSettings
from reperf.files import sha256


class TextManifest(AnyManifest):
    """A converted text."""

    counted = "sequences"

    settings: TextSettings
    vocabulary_sha256: str = Field(description="of the user's file, or of the trained one")
    documents: int
    sentences: int = Field(description="of the text that have a token")
    sequences: int = Field(description="over all passes: pairs of sentences or of their pieces")
    tokens: int = Field(description="of all sequences, padding left out")
    predictions: int = Field(description="masked tokens of all sequences")
    random_next: int = Field(description="sequences whose second half is of another document")
    bytes: int = Field(description="of all parts, without the files beside them")
    parts: list[AnyPart]

    def is_of(self, settings: TextSettings) -> bool:
        """Whether the set was made so, of the vocabulary as it is now, if it is still there."""
        given = settings.vocabulary
        changed = given and Path(given).exists() and sha256(given) != self.vocabulary_sha256
        return super().is_of(settings) and not changed
