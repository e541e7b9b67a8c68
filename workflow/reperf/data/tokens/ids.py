"""What the manifests of sets say whose text has become ids of one vocabulary."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from reperf.data.manifest import AnyManifest
from reperf.data.tokens.vocabulary import is_still


class IdManifest(AnyManifest):
    """A converted set of ids.

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
