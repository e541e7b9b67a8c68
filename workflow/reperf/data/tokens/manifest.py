"""manifest.json of a converted stream of tokens."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from reperf.data.manifest import AnyManifest, AnyPart
from reperf.data.tokens.vocabulary import is_still
from reperf.faults import Model


class TokenSettings(Model):
    """How text becomes tokens, and into how many parts they go."""

    tokens: str = Field(description="the file or folder of the text")
    bpe: str | None = Field(description="the folder of the vocabulary; None: bytes")
    parts: int = Field(description="files of ids")
    seed: int = Field(description="of the order in which samples are read")


class IdManifest(AnyManifest):
    """A converted set whose text has become ids of one vocabulary.

    Attributes:
        named: the setting that names the folder of the vocabulary.
    """

    named: ClassVar[str]

    settings: Any
    type: Literal["uint16", "uint32"] = Field(description="of an id, the lowest byte first")
    vocabulary: int = Field(description="ids are below it")
    vocabulary_sha256: str | None = Field(description="of the user's two files; null: bytes")
    end: int = Field(description="the id that ends a document, or a sentence of a pair")

    def is_of(self, settings: Any) -> bool:  # noqa: ANN401 - of its own kind
        """Whether the set was made so, of the vocabulary as it is now, if it is still there."""
        folder = getattr(settings, self.named)
        return super().is_of(settings) and is_still(folder, self.vocabulary_sha256)


class TokenManifest(IdManifest):
    """A converted stream of tokens."""

    named = "bpe"
    counted = "tokens"

    settings: TokenSettings
    documents: int
    tokens: int
    bytes: int = Field(description="of all parts, without the files beside them")
    parts: list[AnyPart]
