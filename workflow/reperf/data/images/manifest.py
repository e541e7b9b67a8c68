"""manifest.json of a converted set of images."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from reperf.data.manifest import AnyManifest, AnyPart


class ImagePart(AnyPart):
    """One record file of images."""

    images: int


class ImageManifest(AnyManifest):
    """A converted set of images."""

    manifest_version: Literal[1] = 1
    format: str
    source: str = Field(description="the folder of the images")
    seed: int = Field(description="of the shuffle")
    images: int
    bytes: int = Field(description="of all parts, without the files beside them")
    classes: list[str] = Field(description="synsets in label order")
    images_per_class: list[int] = Field(description="in label order")
    reencoded: list[str] = Field(description="images that became RGB JPEGs, by path under train/")
    ignored: int = Field(description="files among the images without a JPEG's name")
    parts: list[ImagePart]

    def is_of(self, images: Path, parts: int, seed: int) -> bool:
        """Whether the set was made from this folder, into so many parts, by this seed."""
        return (self.source, len(self.parts), self.seed) == (str(images), parts, seed)
