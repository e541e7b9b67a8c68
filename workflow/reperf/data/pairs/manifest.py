"""manifest.json of converted pairs."""

from typing import Literal

from pydantic import Field

from reperf.data.manifest import AnyManifest, AnyPart
from reperf.data.tokens.vocabulary import is_still
from reperf.faults import Model


class PairSettings(Model):
    """How pairs become ids, and into how many parts they go."""

    pairs: str = Field(description="the folder of both files")
    joint_bpe: str | None = Field(description="the folder of the vocabulary; None: bytes")
    longest: int = Field(description="tokens of a sentence, with its end, at most")
    parts: int = Field(description="files of ids")
    seed: int = Field(description="of the order in which pairs are read")


class PairPart(AnyPart):
    """One file of ids."""

    pairs: int


class PairManifest(AnyManifest):
    """Converted pairs."""

    manifest_version: Literal[1] = 1
    format: str
    settings: PairSettings
    type: Literal["uint16", "uint32"] = Field(description="of an id, the lowest byte first")
    vocabulary: int = Field(description="ids are below it")
    vocabulary_sha256: str | None = Field(description="of the user's two files; null: bytes")
    end: int = Field(description="the id that ends a sentence, and begins what is predicted")
    pairs: int
    source_tokens: int = Field(description="of all sources, with their ends")
    target_tokens: int = Field(description="of all targets, with their ends")
    bytes: int = Field(description="of all parts, without the files beside them")
    parts: list[PairPart]

    def is_of(self, settings: PairSettings) -> bool:
        """Whether the set was made so, of the vocabulary as it is now, if it is still there."""
        return self.settings == settings and is_still(settings.joint_bpe, self.vocabulary_sha256)
