"""manifest.json: what lies in a folder of record parts."""

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from reperf.files import whole_file


class Part(BaseModel):
    """One record file.

    Its checksum is CRC-32C, which every processor computes as fast as it reads. With SHA-256 a
    conversion takes half as long again, and longer on processors without instructions for it.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    images: int
    bytes: int
    crc32c: str = Field(pattern="^[0-9a-f]{8}$")


class Manifest(BaseModel):
    """A converted data set. It is written last: once it is there, every part is whole."""

    model_config = ConfigDict(extra="forbid")

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
    parts: list[Part]

    def write(self, path: Path) -> None:
        """Write the manifest as indented JSON, whole or not at all."""
        with whole_file(path) as stream:
            json.dump(self.model_dump(mode="json"), stream, indent=1, ensure_ascii=False)
            stream.write("\n")

    def is_of(self, images: Path, parts: int, seed: int) -> bool:
        """Whether the set was made from this folder, into so many parts, by this seed."""
        return (self.source, len(self.parts), self.seed) == (str(images), parts, seed)

    @classmethod
    def read(cls, path: Path | str) -> "Manifest":
        """Read a manifest.

        Raises:
            pydantic.ValidationError: the file is not a manifest.
        """
        return cls.model_validate_json(Path(path).read_bytes())
