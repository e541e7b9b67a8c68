"""manifest.json: what lies in a folder of record parts."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from reperf.faults import Model
from reperf.files import sha256, whole_file

if TYPE_CHECKING:  # plans ask for manifests, and write no parts
    from reperf.data.part import Written


class AnyPart(Model, extra="allow"):
    """One record file, and by the name that its manifest's kind has for it, what it holds.

    Its checksum is CRC-32C, which every processor computes as fast as it reads. With SHA-256 a
    conversion of images takes half as long again, and longer on processors without instructions
    for it.
    """

    __pydantic_extra__: dict[str, int]

    name: str
    bytes: int
    crc32c: str = Field(pattern="^[0-9a-f]{8}$")


class AnyManifest(Model):
    """A converted data set. It is written last: once it is there, every part is whole.

    Attributes:
        counted: the field of a part that says how many samples, or what else, it holds; None: none.
    """

    counted: ClassVar[str | None] = None

    manifest_version: Literal[1] = 1
    format: str

    @model_validator(mode="after")
    def _parts_are_counted(self) -> Self:
        for part in getattr(self, "parts", ()):
            if {*part.model_extra} != {*filter(None, [self.counted])}:
                raise ValueError(f"parts.{part.name}: allowed: {self.counted or 'no count'}")
        return self

    def is_of(self, settings: Any) -> bool:  # noqa: ANN401 - of its own kind
        """Whether the set was made so."""
        return bool(getattr(self, "settings", None) == settings)

    @classmethod
    def of_parts(cls, folder: Path, written: "Sequence[Written]", **others: Any) -> Self:  # noqa: ANN401
        """Write the manifest of parts that are whole, as indented JSON; returns it.

        Args:
            folder: where the parts lie.
            written: the parts; what was counted in them is added up.
            others: all fields that do not follow from the parts.
        """
        counts = {name: sum(one.counts[name] for one in written) for name in written[0].counts}
        parts = [
            {"name": one.name, "bytes": one.bytes, "crc32c": one.crc32c}
            | ({cls.counted: one.counts[cls.counted]} if cls.counted else {})
            for one in written
        ]
        size = sum(one.bytes for one in written)
        manifest = cls.model_validate(counts | others | {"bytes": size, "parts": parts})
        with whole_file(folder / "manifest.json") as stream:
            json.dump(manifest.model_dump(mode="json"), stream, indent=1, ensure_ascii=False)
            stream.write("\n")
        return manifest

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read a manifest.

        Raises:
            pydantic.ValidationError: the file is no manifest of this kind.
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
    counts = (name for part in parts[:1] for name in part if name not in AnyPart.model_fields)
    counted = next(counts, None)
    if folder is None or counted is None:
        return None
    held = {"samples": sum(part[counted] for part in parts), "bytes": content["bytes"]}
    return {"name": Path(folder).parent.name, "counted": counted, **held}


def digest_of_set(folder: str | None) -> str | None:
    """The SHA-256 of the manifest in a folder that runs read; None if there is none."""
    manifest = folder and Path(folder, "manifest.json")
    return sha256(manifest) if manifest and manifest.is_file() else None
