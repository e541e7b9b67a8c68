"""manifest.json of a converted stream of tokens."""

from pydantic import Field

from reperf.data.manifest import AnyPart
from reperf.data.tokens.ids import IdManifest
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


class TokenManifest(IdManifest):
    """A converted stream of tokens."""

    named = "bpe"
    counted = "tokens"

    settings: TokenSettings
    documents: int
    tokens: int
    bytes: int = Field(description="of all parts, without the files beside them")
    parts: list[TokenPart]
