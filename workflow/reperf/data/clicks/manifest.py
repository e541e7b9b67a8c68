"""manifest.json of converted clicks."""

from pydantic import Field

from reperf.data.manifest import AnyManifest, AnyPart
from reperf.faults import Model


class ClickSettings(Model):
    """What is converted, and into how many parts it goes."""

    clicks: str = Field(description="the file of lines")
    parts: int = Field(description="files of rows")
    seed: int = Field(description="of the order in which batches are read")


class ClickManifest(AnyManifest):
    """Converted clicks."""

    counted = "samples"

    settings: ClickSettings
    samples: int
    clicked: int = Field(description="of them, those with the label 1")
    bytes: int
    parts: list[AnyPart]
