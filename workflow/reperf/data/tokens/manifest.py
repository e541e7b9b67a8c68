"""manifest.json of a converted stream of tokens."""

from typing import Literal

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


class TokenPart(AnyPart):
    """One file of ids."""

    tokens: int


class TokenManifest(AnyManifest):
    """A converted stream of tokens."""

    manifest_version: Literal[1] = 1
    format: str
    settings: TokenSettings
    type: Literal["uint16", "uint32"] = Field(description="of an id, the lowest byte first")
    vocabulary: int = Field(description="ids are below it")
    vocabulary_sha256: str | None = Field(description="of the user's two files; null: bytes")
    end: int = Field(description="the id that ends a document")
    documents: int
    tokens: int
    bytes: int = Field(description="of all parts, without the files beside them")
    parts: list[TokenPart]

    def is_of(self, settings: TokenSettings) -> bool:
        """Whether the set was made so, of the vocabulary as it is now, if it is still there."""
        return self.settings == settings and is_still(settings.bpe, self.vocabulary_sha256)
