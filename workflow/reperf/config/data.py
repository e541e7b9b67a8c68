"""The data sets that runs read."""

from pathlib import Path
from typing import Self

from pydantic import model_validator

from reperf.config.words import with_examples
from reperf.data.kind import Kind
from reperf.data.kinds import KINDS

KIND_OF = {key: name for name, kind in KINDS.items() for key in kind.own_keys()}
"""Key -> the one kind whose sets have it; the keys of all kinds are not here."""


class Data(*reversed(KINDS.values()), json_schema_extra=with_examples):  # type: ignore[misc,call-arg]  # the packages of reperf.data say it
    """A data set that suites with real input train on."""

    @model_validator(mode="after")
    def _keys_are_of_the_kind(self) -> Self:
        for key, kind in KIND_OF.items():
            value = getattr(self, key)
            if kind != self.kind and value != type(self).model_fields[key].default:
                shown = str(value) if isinstance(value, Path) else value
                raise ValueError(f"{key}: got {shown!r}; allowed: with `kind: {kind}`")
        self.of_kind.check_keys()
        return self

    @property
    def of_kind(self) -> Kind:
        """The same set as one of its kind, which says what can be done with it."""
        return KINDS[self.kind].of(self)

    @property
    def is_embedded(self) -> bool:
        """Whether what it holds comes with reperf."""
        return self.user_input is None

    def folder(self, read: str) -> str | None:
        """The folder that a run reads, of record parts or of images; None when synthetic."""
        if read == "synthetic":
            return None
        if read == "folder":
            return str(self.of_kind.source)
        return f"data/{self.name}/{read}"


EMBEDDED = (
    Data(),
    *(Data(name=f"embedded-{kind}", kind=kind) for kind in KINDS if kind != Data().kind),
)  # what a report trains on that names no data
