"""What a kind of data is: one rule makes every embedded set, one converts all sets.

Plans ask kinds, too, so the code that makes and converts sets is imported only where it is called.
"""

from abc import ABC, abstractmethod
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from reperf.config import Data
from reperf.data.manifest import AnyManifest
from reperf.faults import Model


class Kind(ABC):
    """A kind of data; the module `kind` of its folder has it as KIND.

    Attributes:
        formats: the record formats that can hold it.
        manifest: what manifest.json of a converted set holds.
        settings: what decides the records of a set: keys of the configuration, the first of them
            where it is converted from.
        last: the file of the embedded set that is written last, below data/<set>.
        embedded_bytes: of the embedded set, and of its records for a pass, on the safe side.
        growth: bytes of records for a byte of the user's input, on the safe side.
        few: how many samples the embedded set has, in words.
        real: what is real data instead.
        modules: what makes the embedded set, and what converts. Their code decides the bytes.
    """

    formats: tuple[str, ...]
    manifest: type[AnyManifest]
    settings: type[Model]
    last: str
    embedded_bytes: int
    growth: int = 1
    few: str
    real: str
    modules: tuple[str, str]

    @property
    def converter(self) -> ModuleType:
        """What converts."""
        return import_module(self.modules[1])

    def embed(self, data: Data) -> None:
        """Make the embedded set where a data set has it, in place of an earlier one.

        Raises:
            ReperfError: a file cannot be written.
        """
        import_module(self.modules[0]).make(data.source)

    @abstractmethod
    def check(self, data: Data) -> None:
        """Refuse input of the user's own that, at a glance, cannot be converted.

        Raises:
            ReperfError: names the file or folder, and what is allowed.
        """

    def convert(self, data: Data, folder: Path, format_name: str, workers: int) -> None:
        """Convert a set to record parts in a folder; manifest.json is written last.

        Raises:
            ReperfError: the input is refused, or a file cannot be written.
        """
        self.converter.convert(self.settings_of(data), folder, format_name, workers=workers)

    def record_bytes(self, data: Data) -> int:
        """An estimate of the size of a set's records, from the size of all files of its input."""
        if data.own is None:
            return self.embedded_bytes
        files = data.own.rglob("*") if data.own.is_dir() else [data.own]
        return self.growth * sum(file.stat().st_size for file in files if file.is_file())

    def settings_of(self, data: Data) -> Any:  # noqa: ANN401 - its own kind's
        """All that decides the records of a set."""
        asked = data.model_dump(mode="json", include=set(self.settings.model_fields))
        return self.settings(**asked | {data.kind: str(data.source)})

    def is_of(self, data: Data, manifest: Path) -> bool:
        """Whether the converted set beside a manifest is the one asked for, with all its bytes."""
        try:
            found: Any = self.manifest.read(manifest)
            return bool(
                found.format == manifest.parent.name
                and found.is_of(self.settings_of(data))
                and all(
                    manifest.with_name(part.name).stat().st_size == part.bytes
                    for part in found.parts
                )
            )
        except (OSError, ValueError):  # no manifest, or none of this kind
            return False
