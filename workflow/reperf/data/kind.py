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


class Kind(ABC):
    """A kind of data; the module `kind` of its folder has it as KIND.

    Attributes:
        formats: the record formats that can hold it.
        manifest: what manifest.json of a converted set holds.
        last: the file of the embedded set that is written last, below data/<set>.
        embedded_bytes: of the embedded set, and of its records for a pass, on the safe side.
        few: how many samples the embedded set has, in words.
        real: what is real data instead.
        modules: what makes the embedded set, and what converts. Their code decides the bytes.
    """

    formats: tuple[str, ...]
    manifest: type[AnyManifest]
    last: str
    embedded_bytes: int
    few: str
    real: str
    modules: tuple[str, str]

    @property
    def maker(self) -> ModuleType:
        """What makes the embedded set."""
        return import_module(self.modules[0])

    @property
    def converter(self) -> ModuleType:
        """What converts."""
        return import_module(self.modules[1])

    @abstractmethod
    def embed(self, folder: Path) -> None:
        """Make the embedded set in data/<set>, in place of an earlier one.

        Raises:
            ReperfError: a file cannot be written.
        """

    @abstractmethod
    def check(self, data: Data) -> None:
        """Refuse input of the user's own that, at a glance, cannot be converted.

        Raises:
            ReperfError: names the file or folder, and what is allowed.
        """

    @abstractmethod
    def convert(self, data: Data, folder: Path, format_name: str, workers: int) -> None:
        """Convert a set to record parts in a folder; manifest.json is written last.

        Raises:
            ReperfError: the input is refused, or a file cannot be written.
        """

    @abstractmethod
    def record_bytes(self, data: Data) -> int:
        """An estimate of the size of a set's records."""

    @abstractmethod
    def _is_of(self, data: Data, found: Any) -> bool:  # noqa: ANN401 - its own kind's
        """Whether a converted set was made from what is asked for, with its settings."""

    def is_of(self, data: Data, manifest: Path) -> bool:
        """Whether the converted set beside a manifest is the one asked for, with all its bytes."""
        try:
            found: Any = self.manifest.read(manifest)
            return bool(
                found.format == manifest.parent.name
                and self._is_of(data, found)
                and all(
                    manifest.with_name(part.name).stat().st_size == part.bytes
                    for part in found.parts
                )
            )
        except (OSError, ValueError):  # no manifest, or none of this kind
            return False


def bytes_below(path: Path) -> int:
    """The size of a file, or of all files of a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())
