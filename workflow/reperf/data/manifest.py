"""manifest.json: what lies in a folder of record parts."""

import json
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from reperf.data.text.settings import TextSettings
from reperf.faults import Model
from reperf.files import sha256, whole_file


class AnyPart(Model):
    """One record file.

    Its checksum is CRC-32C, which every processor computes as fast as it reads. With SHA-256 a
    conversion of images takes half as long again, and longer on processors without instructions
    for it.
    """

    name: str
    bytes: int
    crc32c: str = Field(pattern="^[0-9a-f]{8}$")


class AnyManifest(Model):
    """A converted data set. It is written last: once it is there, every part is whole."""

    def write(self, path: Path) -> None:
        """Write the manifest as indented JSON, whole or not at all."""
        with whole_file(path) as stream:
            json.dump(self.model_dump(mode="json"), stream, indent=1, ensure_ascii=False)
            stream.write("\n")

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read a manifest.

        Raises:
            pydantic.ValidationError: the file is no manifest of this kind.
        """
        return cls.model_validate_json(Path(path).read_bytes())


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


class TextPart(AnyPart):
    """One record file of sequences."""

    sequences: int


class TextManifest(AnyManifest):
    """A converted text."""

    manifest_version: Literal[1] = 1
    format: str
    settings: TextSettings
    vocabulary_sha256: str = Field(description="of the user's file, or of the trained one")
    documents: int
    sentences: int = Field(description="of the text that have a token")
    sequences: int = Field(description="over all passes: pairs of sentences or of their pieces")
    tokens: int = Field(description="of all sequences, padding left out")
    predictions: int = Field(description="masked tokens of all sequences")
    random_next: int = Field(description="sequences whose second half is of another document")
    bytes: int = Field(description="of all parts, without the files beside them")
    parts: list[TextPart]

    def is_of(self, settings: TextSettings) -> bool:
        """Whether the set was made so, of the vocabulary as it is now, if it is still there."""
        if self.settings != settings:
            return False
        given = settings.vocabulary
        return not (given and Path(given).exists()) or sha256(given) == self.vocabulary_sha256


def digest_of_set(folder: str | None) -> str | None:
    """The SHA-256 of the manifest in a folder that runs read; None if there is none."""
    manifest = folder and Path(folder, "manifest.json")
    return sha256(manifest) if manifest and manifest.is_file() else None
