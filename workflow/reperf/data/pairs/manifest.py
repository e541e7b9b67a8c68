"""manifest.json of converted pairs."""

from pydantic import Field

from reperf.data.manifest import AnyPart
from reperf.data.tokens.manifest import IdManifest
from reperf.faults import Model


class PairSettings(Model):
    """How pairs become ids, and into how many parts they go."""

    pairs: str = Field(description="the folder of both files")
    joint_bpe: str | None = Field(description="the folder of the vocabulary; None: bytes")
    longest: int = Field(description="tokens of a sentence, with its end, at most")
    parts: int = Field(description="files of ids")
    seed: int = Field(description="of the order in which pairs are read")


class PairManifest(IdManifest):
    """Converted pairs."""

    named = "joint_bpe"
    counted = "pairs"

    settings: PairSettings
    pairs: int
    source_tokens: int = Field(description="of all sources, with their ends")
    target_tokens: int = Field(description="of all targets, with their ends")
    bytes: int = Field(description="of all parts, without the files beside them")
    parts: list[AnyPart]
