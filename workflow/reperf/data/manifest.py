"""manifest.json: what lies in a folder of record parts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field

from reperf.faults import Model
from reperf.files import sha256


class Written(NamedTuple):
    """A part that is whole."""

    name: str
    bytes: int
    crc32c: str  # of the file, 8 hexadecimal digits
    counts: Mapping[str, int]  # what it holds, by the manifest's names


class Part(Model, extra="allow"):
    """One record file, and how many samples it holds, by the name that its kind has for them.

    Its checksum is CRC-32C, which every processor computes as fast as it reads. With SHA-256, a
    conversion of images takes half as long again, and longer on processors without instructions
    for it.
    """

    __pydantic_extra__: dict[str, int]

    name: str
    bytes: int
    crc32c: str = Field(pattern="^[0-9a-f]{8}$")


class Manifest(Model, extra="allow"):
    """A converted data set. It is written last: once it is there, every part is whole.

    Between `format` and `bytes` stand the settings and counts of its kind: docs/data.md.
    """

    manifest_version: Literal[1] = 1
    format: str
    bytes: int
    parts: list[Part]

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read a manifest.

        Raises:
            pydantic.ValidationError: the file is not a manifest.
        """
        return cls.model_validate_json(Path(path).read_bytes())


def read_of_set(folder: str | None) -> dict[str, Any] | None:
    """What a set in a folder that runs read holds, as SetRead of a run's record has it.

    Args:
        folder: data/<name>/<format>; None: nothing is read.

    Returns:
        None where no converted set lies there, or one whose parts count nothing.
    """
    manifest = folder and Path(folder, "manifest.json")
    content = json.loads(manifest.read_bytes()) if manifest and manifest.is_file() else {}
    parts = content.get("parts") or []
    counts = (name for part in parts[:1] for name in part if name not in Part.model_fields)
    counted = next(counts, None)
    if folder is None or counted is None:
        return None
    held = {"samples": sum(part[counted] for part in parts), "bytes": content["bytes"]}
    return {"name": Path(folder).parent.name, "counted": counted, **held}


def digest_of_set(folder: str | None) -> str | None:
    """The SHA-256 of the manifest in a folder that runs read; None if there is none."""
    manifest = folder and Path(folder, "manifest.json")
    return sha256(manifest) if manifest and manifest.is_file() else None
