"""What a kind of data is: the keys of its sets, and what can be done with a set."""

import json
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field

from reperf.data import KIND_NAMES
from reperf.data.manifest import Manifest, Written
from reperf.errors import ReperfError
from reperf.faults import Model
from reperf.files import whole_file
from reperf.values import LARGEST_SEED, MOST_PARTS, MOST_PROCESSES, Name, Number

RESERVED = ("measured", "published")
"""Folders under data/ that come with reperf."""


def _not_reserved(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"allowed: names other than {' and '.join(RESERVED)}, reperf's own data")
    return name


class Kind(Model):
    """A data set of one kind: the keys that all kinds have, in the order of the page.

    A kind's class adds its own keys. The key with the kind's name says where the user's input lies;
    without it, the embedded set is made. No two kinds have a key in common, so that a data set of
    the configuration, `reperf.config.Data`, can have the keys of all. Its own kind says what can be
    done with it: `KINDS[data.kind].check(data)`.
    """

    formats: ClassVar[tuple[str, ...]]  # the record formats that can hold it
    counted: ClassVar[str | None] = None  # the manifest's name of the samples of a part
    embedded: ClassVar[str]  # the file or folder of the embedded set, below data/<set>
    last: ClassVar[str]  # the file of the embedded set that is written last, below data/<set>
    embedded_bytes: ClassVar[int]  # of the embedded set and its records for a pass, at most
    growth: ClassVar[int] = 1  # bytes of records for a byte of the user's input, at most
    few: ClassVar[str]  # how many samples the embedded set has, in words
    real: ClassVar[str]  # the user's input, in words
    # The module that makes the embedded set (`make`), and the one that converts a set (`convert`).
    # Their code decides the bytes.
    modules: ClassVar[tuple[str, str]]
    holds_folders: ClassVar[bool] = False  # whether systems may read the input unconverted

    name: Annotated[Name, AfterValidator(_not_reserved)] = Field(
        "embedded",
        description="folder name under data/, other than measured and published, reperf's own",
    )
    kind: Literal[KIND_NAMES] = Field(  # type: ignore[valid-type]  # their folders say it
        "images", description="what it holds"
    )
    embedded_on_gpus: bool = Field(
        False, description="whether GPUs, too, may train on the embedded set, which is small"
    )
    parts: Number = Field(
        8,
        ge=1,
        le=MOST_PARTS,
        description="record files; a multiple of the number of devices of every topology",
    )
    workers: Number = Field(2, ge=1, le=MOST_PROCESSES, description="processes that convert")
    seed: Number = Field(
        1, ge=0, le=LARGEST_SEED, description="seed of the order, and of a text's pairs and masks"
    )

    @property
    def own(self) -> Path | None:
        """Where the user's input lies; None where the embedded set is made."""
        own: Path | None = getattr(self, self.kind)
        return own

    def check_keys(self) -> None:
        """Refuse values that do not go together.

        Raises:
            ValueError: names the key, and what is allowed.
        """

    def shape_of(self) -> dict[str, int]:
        """What a set decides of the shape of a workload that trains on it."""
        return {}

    def least_shape_of(self) -> dict[str, int]:
        """The least values that a workload's shape must have to train on a set."""
        return {}

    def least_batch_of(self) -> int:
        """The fewest samples that a batch must have to train on a set."""
        return 1

    def vocabulary_digest(self) -> str | None:
        """The SHA-256 of the user's vocabulary; None if no file is named or it is gone."""
        return None

    def described(self) -> dict[str, Any]:
        """What decides a set's records, as its manifest says it."""
        values = self.model_dump(mode="json")
        return {"settings": {key: values[key] for key in (*self.own_keys(), "parts", "seed")}}

    @classmethod
    def own_keys(cls) -> list[str]:
        """The keys that only sets of this kind have."""
        return [key for key in cls.model_fields if key not in Kind.model_fields]

    @classmethod
    def source_of(cls, data: "Kind") -> Path:
        """Where the input of a set lies: the user's, or the embedded set."""
        return Path(data.own or Path("data", data.name, cls.embedded))

    @classmethod
    def settings_of(cls, data: "Kind") -> Self:
        """A set with the keys of this kind alone and with its input, embedded or not."""
        values = {key: getattr(data, key) for key in cls.model_fields}
        values[data.kind] = cls.source_of(data)
        return cls.model_construct(**values)  # type: ignore[return-value]  # so says its plugin

    @classmethod
    def check(cls, data: Any) -> None:  # noqa: ANN401 - a set of the configuration
        """Refuse a user's input that, at a glance, cannot be converted.

        Raises:
            ReperfError: names the file or folder, and what is allowed.
        """
        if data.own and not os.path.lexists(data.own):
            raise ReperfError(f"{data.own}: no such file or folder; allowed: {cls.real}")

    @classmethod
    def embed(cls, data: "Kind") -> None:
        """Make the embedded set, in place of an earlier set.

        Raises:
            ReperfError: a file cannot be written.
        """
        import_module(cls.modules[0]).make(cls.source_of(data))

    @classmethod
    def convert(cls, data: "Kind", folder: Path, format_name: str, workers: int) -> None:
        """Convert a set to record parts in a folder; manifest.json is written last.

        The bytes depend on the input and the settings, not on the number of workers. What an
        earlier conversion left in the folder is removed.

        Raises:
            ReperfError: the input is refused, or a file cannot be written.
        """
        converter = import_module(cls.modules[1])
        converter.convert(cls.settings_of(data), folder, format_name, workers=workers)

    @classmethod
    def record_bytes(cls, data: Any) -> int:  # noqa: ANN401 - a set of the configuration
        """An estimate of the size of a set's records, from the size of all files of its input."""
        if data.own is None:
            return cls.embedded_bytes
        files = data.own.rglob("*") if data.own.is_dir() else [data.own]
        return cls.growth * int(sum(file.stat().st_size for file in files if file.is_file()))

    def write_manifest(
        self,
        folder: Path,
        format_name: str,
        written: Sequence[Written],
        **others: object,
    ) -> Manifest:
        """Write the manifest of parts that are whole, as indented JSON; returns it.

        Args:
            folder: where the parts lie.
            written: the parts; the manifest has the sum of each count, and each part its samples.
            others: more fields, which stand before the counts; an empty one of the same name as a
                later field keeps a place for it.
        """
        content: dict[str, Any] = {"manifest_version": 1, "format": format_name}
        content |= self.described() | others
        content |= {name: sum(part.counts[name] for part in written) for name in written[0].counts}
        content["bytes"] = sum(part.bytes for part in written)
        content["parts"] = [
            {"name": part.name, "bytes": part.bytes, "crc32c": part.crc32c}
            | ({self.counted: part.counts[self.counted]} if self.counted else {})
            for part in written
        ]
        manifest = Manifest.model_validate(content)
        with whole_file(folder / "manifest.json") as stream:
            json.dump(content, stream, indent=1, ensure_ascii=False)
            stream.write("\n")
        return manifest

    @classmethod
    def is_of(cls, data: "Kind", manifest: Path) -> bool:
        """Whether the converted set beside a manifest is the one asked for, with all its bytes."""
        settings = cls.settings_of(data)
        try:
            made = Manifest.read(manifest)
            fields = made.model_extra or {}
            return (
                made.format == manifest.parent.name
                and settings.described().items() <= fields.items()
                and len(made.parts) == settings.parts
                and settings.vocabulary_digest() in (None, fields.get("vocabulary_sha256"))
                and all(
                    manifest.with_name(part.name).stat().st_size == part.bytes
                    for part in made.parts
                )
            )
        except (OSError, ValueError):  # there is no manifest, or it is not whole
            return False
