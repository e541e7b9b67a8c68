"""manifest.json: what lies in a folder of record parts."""

import json
from pathlib import Path
from typing import Self

from pydantic import Field

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


def digest_of_set(folder: str | None) -> str | None:
    """The SHA-256 of the manifest in a folder that runs read; None if there is none."""
    manifest = folder and Path(folder, "manifest.json")
    return sha256(manifest) if manifest and manifest.is_file() else None
