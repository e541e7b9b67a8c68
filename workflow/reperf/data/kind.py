"""What a kind of data is: the keys of its sets, and what can be done with a set."""

import os
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field

from reperf.data import KIND_NAMES
from reperf.errors import ReperfError
from reperf.validation import Model
from reperf.values import LARGEST_SEED, MOST_PARTS, MOST_PROCESSES, Name, Number

RESERVED = ("measured", "published")  # folders under data/ that come with reperf
MANIFEST = "manifest.json"


def _not_reserved(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"allowed: names other than {' and '.join(RESERVED)}, reperf's own data")
    return name


class Kind(Model):
    """A data set of one kind: the keys that all kinds have, in the order of the page.

    A kind's class adds its own keys, which no other has: the configuration's `Data` has the keys of
    all. The key with the kind's name says where the user's input lies; without it, the embedded set
    is made.
    """

    formats: ClassVar[tuple[str, ...]]  # the record formats that can hold it
    counted: ClassVar[str | None] = None  # the manifest's name of the samples of a part
    embedded: ClassVar[str]  # the file or folder of the embedded set, below data/<set>
    last: ClassVar[str]  # the file of the embedded set that is written last, below data/<set>
    embedded_bytes: ClassVar[int]  # of the embedded set and its records for a pass, at most
    growth: ClassVar[int] = 1  # bytes of records for a byte of the user's input, at most
    few: ClassVar[str]  # how many samples the embedded set has, in words
    real: ClassVar[str]  # the user's input, in words
    holds_folders: ClassVar[bool] = False  # whether systems may read the input unconverted

    name: Annotated[Name, AfterValidator(_not_reserved)] = "embedded"
    """folder name under data/, other than measured and published, reperf's own"""
    kind: Literal[KIND_NAMES] = Field(  # type: ignore[valid-type]  # their packages say it
        "images", description="what it holds"
    )
    embedded_on_gpus: bool = False
    """whether GPUs, too, may train on the embedded set, which is small"""
    parts: Number = Field(8, ge=1, le=MOST_PARTS)
    """record files; a multiple of the number of devices of every topology"""
    workers: Number = Field(2, ge=1, le=MOST_PROCESSES, description="processes that convert")
    seed: Number = Field(1, ge=0, le=LARGEST_SEED)
    """seed of the order, and of a text's pairs and masks"""

    @classmethod
    def own_keys(cls) -> list[str]:
        """The keys that only sets of this kind have."""
        return [key for key in cls.model_fields if key not in Kind.model_fields]

    @classmethod
    def of(cls, data: "Kind") -> Self:
        """A data set of the configuration with the keys of this kind alone, unchecked."""
        return cls.model_construct(  # type: ignore[return-value]  # so says its plugin
            **{key: getattr(data, key) for key in cls.model_fields}
        )

    @classmethod
    def converter(cls) -> str:
        """The module that makes the embedded set and converts sets: its code decides the bytes."""
        return f"{cls.__module__}.convert"

    @property
    def user_input(self) -> Path | None:
        """Where the user's input lies; None where the embedded set is made."""
        path: Path | None = getattr(self, self.kind)
        return path

    @property
    def source(self) -> Path:
        """Where the input lies: the user's, or the embedded set."""
        return self.user_input or Path("data", self.name, self.embedded)

    def check_keys(self) -> None:
        """Refuse values that do not go together, by a ValueError."""

    def decided_shape(self) -> dict[str, int]:
        """What a set decides of the shape of a workload that trains on it."""
        return {}

    def least_shape(self) -> dict[str, int]:
        """The least values that a workload's shape must have to train on a set."""
        return {}

    def least_batch(self) -> int:
        """The fewest samples that a batch must have to train on a set."""
        return 1

    def vocabulary_digest(self) -> str | None:
        """The SHA-256 of the user's vocabulary; None if no file is named or it is gone."""
        return None

    def check(self) -> None:
        """Refuse a user's input that, at a glance, cannot be converted."""
        if self.user_input and not os.path.lexists(self.user_input):
            raise ReperfError(f"{self.user_input}: no such file or folder; allowed: {self.real}")

    def record_bytes(self) -> int:
        """An estimate of the size of a set's records, from the size of all files of its input."""
        if self.user_input is None:
            return self.embedded_bytes
        files = self.user_input.rglob("*") if self.user_input.is_dir() else [self.user_input]
        return self.growth * sum(file.stat().st_size for file in files if file.is_file())

    def described(self) -> dict[str, Any]:
        """What decides a set's records, as its manifest says it."""
        values = self.model_dump(mode="json") | {self.kind: str(self.source)}
        return {"settings": {key: values[key] for key in (*self.own_keys(), "parts", "seed")}}

    def embed(self) -> None:
        import_module(self.converter()).make(self.source)

    def convert(self, folder: Path, format_name: str, workers: int) -> "Manifest":
        """Convert a set to record parts in a folder; manifest.json is written last.

        The bytes depend on the input and the settings, not on the number of workers.
        """
        self.check()
        converter = import_module(self.converter())
        conversion = converter.conversion(self, format_name, workers)
        manifest: Manifest = conversion.run(self, folder, format_name, workers)
        return manifest

    def lies_at(self, manifest: Path) -> bool:
        """Whether the converted set beside a manifest is this one, with all its bytes."""
        try:
            content = Manifest.read(manifest)
            fields = content.model_extra or {}
            return (
                content.format == manifest.parent.name
                and self.described().items() <= fields.items()
                and len(content.parts) == self.parts
                and self.vocabulary_digest() in (None, fields.get("vocabulary_sha256"))
                and all(
                    manifest.with_name(part.name).stat().st_size == part.bytes
                    for part in content.parts
                )
            )
        except (OSError, ValueError):  # there is no manifest, or it is not whole
            return False


class Part(Model, extra="allow"):
    """One record file, and how many samples it holds, by the name that its kind has for them.

    Its checksum is CRC-32C: with SHA-256, a conversion of images takes half as long again.
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
        """Read a manifest; raises pydantic.ValidationError if the file is not one."""
        return cls.model_validate_json(Path(path).read_bytes())
