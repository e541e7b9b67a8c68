"""The data sets that runs read."""

from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from reperf.config.words import (
    LARGEST_SEED,
    MOST_PARTS,
    MOST_PROCESSES,
    Model,
    Name,
    Number,
    YesOrNo,
)
from reperf.data import KINDS
from reperf.data.keys import KindKeys

KEYS: dict[str, type[KindKeys]] = {
    kind: import_module(f"reperf.data.{kind}.keys").Keys for kind in KINDS
}
"""What only sets of that kind have."""
KIND_OF = {key: kind for kind, keys in KEYS.items() for key in keys.model_fields}
"""Whose a key is; those of all kinds are not here."""

RESERVED = ("measured", "published")
"""Folders under data/ that come with reperf."""


def _not_reserved(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"allowed: names other than {' and '.join(RESERVED)}, reperf's own data")
    return name


class _AnyData(Model):
    """What data sets of all kinds have, in the order of the page."""

    name: Annotated[Name, AfterValidator(_not_reserved)] = Field(
        "embedded",
        description="folder name under data/, other than measured and published, reperf's own",
    )
    kind: Literal[KINDS] = Field(  # type: ignore[valid-type]  # their folders say it
        "images", description="what it holds"
    )
    embedded_on_gpus: YesOrNo = Field(
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


class Data(*reversed(KEYS.values()), _AnyData):  # type: ignore[misc]  # likewise
    """A data set that suites with real input train on."""

    @model_validator(mode="after")
    def _keys_are_of_the_kind(self) -> Self:
        for key, kind in KIND_OF.items():
            value = getattr(self, key)
            if kind != self.kind and value != type(self).model_fields[key].default:
                shown = str(value) if isinstance(value, Path) else value
                raise ValueError(f"{key}: got {shown!r}; allowed: with `kind: {kind}`")
        KEYS[self.kind].check_keys(self)
        return self

    @property
    def own(self) -> Path | None:
        """Where the user's input lies; None where the embedded set is made."""
        return getattr(self, self.kind)

    @property
    def is_embedded(self) -> bool:
        """Whether what it holds comes with reperf."""
        return self.own is None

    @property
    def shape(self) -> dict[str, int]:
        """What it decides of the shape of a workload that trains on it."""
        return KEYS[self.kind].shape_of(self)

    @property
    def source(self) -> Path:
        """What it is converted from, where that lies."""
        return self.own or Path("data", self.name, KEYS[self.kind].embedded)

    def folder(self, read: str) -> str | None:
        """The folder that a run reads, of record parts or of images; None when synthetic."""
        if read == "synthetic":
            return None
        if read == "folder":
            return str(self.source)
        return f"data/{self.name}/{read}"


EMBEDDED = (
    Data(),
    *(Data(name=f"embedded-{kind}", kind=kind) for kind in KINDS if kind != Data().kind),
)
"""What a report trains on that names no data."""
