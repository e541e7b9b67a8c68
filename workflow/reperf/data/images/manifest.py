"""manifest.json of a converted set of images."""

from pydantic import Field

from reperf.data.manifest import AnyManifest, AnyPart
from reperf.faults import Model


class ImageSettings(Model):
    """What is converted, and into how many parts it goes."""

    images: str
    parts: int
    seed: int


class ImageManifest(AnyManifest):
    """A converted set of images."""

    counted = "images"

    source: str = Field(description="the folder of the images")
    seed: int = Field(description="of the shuffle")
    images: int
    bytes: int = Field(description="of all parts, without the files beside them")
    classes: list[str] = Field(description="synsets in label order")
    images_per_class: list[int] = Field(description="in label order")
    reencoded: list[str] = Field(description="images that became RGB JPEGs, by path under train/")
    ignored: int = Field(description="files among the images without a JPEG's name")
    parts: list[AnyPart]

    def is_of(self, settings: ImageSettings) -> bool:
        """Whether the set was made so."""
        made = ImageSettings(images=self.source, parts=len(self.parts), seed=self.seed)
        return made == settings
