"""What one table of the report holds: the systems that run, and the logs of others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from reperf.config.window import Window
from reperf.config.words import (
    LARGEST_IMAGE,
    MOST_ENTRIES,
    MOST_RUNS,
    MOST_SAMPLES,
    MOST_SOURCES,
    Label,
    Model,
    Name,
    Number,
    PlainPath,
    SystemId,
    Topologies,
    Topology,
    Workload,
    distinct,
)
from reperf.systems import Input, Precision, load_systems


def _ends_with_a_name(path: Path) -> Path:
    if path.name in ("", ".."):
        raise ValueError("allowed: a path that ends with the name of a file or folder")
    return path


class Entry(Model):
    """One system in a suite, with what it is asked to do differently there."""

    system: SystemId = Field(description="folder name under workflow/systems/")
    variant: str | None = Field(None, description="one of the system's variants")
    batch_size: Number | None = Field(
        None, ge=1, le=MOST_SAMPLES, description="per device, instead of the suite's"
    )

    @field_validator("variant")
    @classmethod
    def _known_variant(cls, variant: str | None, info: ValidationInfo) -> str | None:
        system = load_systems().get(info.data.get("system"))
        if variant is not None and system and variant not in system.variants:
            allowed = ", ".join(system.variants) or "none"
            raise ValueError(f"allowed: {allowed}")
        return variant

    @property
    def id(self) -> str:
        """The entry's name in paths and tables: "system" or "system+variant"."""
        return entry_id(self.system, self.variant)


def entry_id(system: str, variant: str | None) -> str:
    return system + (f"+{variant}" if variant else "")


def _from_name(entry: Any) -> Any:  # noqa: ANN401 - raw YAML
    return {"system": entry} if isinstance(entry, str) else entry


EntryOrName = Annotated[Entry, BeforeValidator(_from_name, json_schema_input_type=str | Entry)]


def chosen_systems(systems: Any) -> Any:  # noqa: ANN401 - raw YAML
    if systems == "all":
        return list(load_systems())
    return [systems] if isinstance(systems, str) else systems


class LogSource(Model):
    """Logs that are there already, whoever made them."""

    path: Annotated[PlainPath, AfterValidator(_ends_with_a_name)] = Field(
        description=".zip, .tar or .tar.gz, a folder of logs, or one log"
    )
    system: Name | None = Field(None, description="whose logs; left out: the log format's")
    variant: Label | None = Field(None, description="what that system was asked to do differently")
    topology: Topology | None = Field(
        None, description="left out: the logs, their run records or their paths say it"
    )
    format: Label | None = Field(
        None, description="as in docs/log-formats.md; left out: found from the content"
    )
    method: Literal["window", "published"] = Field(
        "window", description="the window rule, or what the format's published extractor does"
    )
    window: Window | None = Field(None, description="instead of the report's")

    @property
    def id(self) -> str:
        """The source's name in tables: that of its file or folder."""
        return self.path.name


def _from_path(source: Any) -> Any:  # noqa: ANN401 - raw YAML
    return {"path": source} if isinstance(source, str) else source


def _from_one(sources: Any) -> Any:  # noqa: ANN401 - raw YAML
    return [sources] if isinstance(sources, str | Mapping) else sources


class Suite(Model):
    """One table and one pair of plots of the report."""

    name: Name = Field(description="folder name under results/suites/, and the figures' name")
    workload: Workload = Field(description="what is trained")
    precision: Precision = Field(description="fp32, or mixed precision (amp)")
    sources: Annotated[
        tuple[Annotated[LogSource, BeforeValidator(_from_path)], ...],
        BeforeValidator(_from_one, json_schema_input_type=str | LogSource | list[str | LogSource]),
    ] = Field(
        (),
        alias="from",
        max_length=MOST_SOURCES,
        description="logs to measure instead of runs, or beside them",
    )
    batch_size: Number | None = Field(
        None,
        ge=1,
        le=MOST_SAMPLES,
        validate_default=True,
        description="samples per device and iteration; only suites with `from` may leave it out",
    )
    entries: tuple[EntryOrName, ...] = Field(
        (),
        alias="systems",
        max_length=MOST_ENTRIES,
        validate_default=True,
        description="what is run: a system's name is enough; only suites with `from` may run none",
    )
    input: Input = Field("records", description="where the samples come from")
    image_size: Number = Field(
        224, ge=32, le=LARGEST_IMAGE, description="height and width after the crop, pixels"
    )
    topologies: Topologies | None = Field(None, description="instead of the report's")
    repeats: Number | None = Field(None, ge=1, le=MOST_RUNS, description="instead of the report's")

    @field_validator("sources")
    @classmethod
    def _distinct_sources(cls, sources: tuple[LogSource, ...]) -> tuple[LogSource, ...]:
        distinct(tuple(source.id for source in sources))
        return sources

    @field_validator("batch_size")
    @classmethod
    def _batch_size_is_known(cls, batch_size: int | None, info: ValidationInfo) -> int | None:
        if batch_size is None and not info.data.get("sources"):
            raise PydanticCustomError("missing", "Field required")
        return batch_size

    @field_validator("entries")
    @classmethod
    def _something_is_measured(
        cls, entries: tuple[Entry, ...], info: ValidationInfo
    ) -> tuple[Entry, ...]:
        if not entries and not info.data.get("sources"):
            raise PydanticCustomError("too_short", "No items")
        for entry in entries:
            if entry.batch_size is None and info.data.get("batch_size", 1) is None:
                raise ValueError(f"{entry.id} has no batch_size; allowed: its own or the suite's")
        distinct(tuple(entry.id for entry in entries))
        return entries

    @model_validator(mode="after")
    def _no_run_has_two_names(self) -> Self:
        sizes = {entry.id: entry.batch_size or self.batch_size for entry in self.entries}
        for entry in self.entries:
            if entry.variant is None:
                continue
            variant = load_systems()[entry.system].variants[entry.variant]
            if why := variant.why_idle(self.workload, self.precision, self.input):
                raise ValueError(
                    f"systems.{entry.id}: the variant changes nothing here: {why}; "
                    "allowed: to leave the variant out"
                )
            if variant.usual and sizes.get(entry.system) == sizes[entry.id]:
                raise ValueError(
                    f"systems.{entry.id}: is what {entry.system} does without a variant; "
                    "allowed: one of the two"
                )
        return self
