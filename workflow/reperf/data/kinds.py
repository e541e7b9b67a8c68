"""The kinds of data, with one interface: one rule makes every embedded set, one converts all sets.

Plans ask them, too, so the code that makes and converts sets is imported only where it is called.
The configuration does not import this: that code would then count as every rule's.
"""

from abc import ABC, abstractmethod
from itertools import islice
from pathlib import Path
from typing import Any

from reperf.config import Data
from reperf.data import RECORD_FORMATS, TEXT_FORMATS
from reperf.data.images.listing import check_layout
from reperf.data.manifest import AnyManifest, ImageManifest, TextManifest
from reperf.data.text.corpus import check_text
from reperf.data.text.vocab_file import read_vocabulary


class Kind(ABC):
    """A kind of data.

    Attributes:
        formats: the record formats that can hold it.
        manifest: what manifest.json of a converted set holds.
        embedded: the file of the embedded set that is written last, below data/<set>.
        embedded_bytes: of the embedded set, and of its records for a pass, on the safe side.
    """

    formats: tuple[str, ...]
    manifest: type[AnyManifest]
    embedded: str
    embedded_bytes: int

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
        """An estimate of the size of the records of the user's own input."""

    @abstractmethod
    def _is_of(self, data: Data, found: Any) -> bool:  # noqa: ANN401 - its own kind
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


class Images(Kind):
    """JPEGs in ImageNet's layout."""

    formats = RECORD_FORMATS
    manifest = ImageManifest
    embedded = "images/manifest.json"
    embedded_bytes = 50 * 10**6
    _CLASSES_MEASURED = 5

    def embed(self, folder: Path) -> None:
        from reperf.data.images.embedded_images import make_images  # noqa: PLC0415

        make_images(folder / "images")

    def check(self, data: Data) -> None:
        if data.images:
            check_layout(data.images)

    def convert(self, data: Data, folder: Path, format_name: str, workers: int) -> None:
        from reperf.data.images.convert_images import convert  # noqa: PLC0415

        convert(
            data.image_folder,
            folder,
            format_name,
            parts=data.parts,
            workers=workers,
            seed=data.seed,
        )

    def record_bytes(self, data: Data) -> int:
        """That of a few classes times their number: network disks list files slowly."""
        assert data.images
        classes = sorted(path for path in data.images.glob("train/*") if path.is_dir())
        few = list(islice(classes, 0, None, max(1, len(classes) // self._CLASSES_MEASURED)))
        seen = sum(image.stat().st_size for one in few for image in one.glob("*"))
        return seen * len(classes) // max(1, len(few))

    def _is_of(self, data: Data, found: ImageManifest) -> bool:
        return found.is_of(data.image_folder, data.parts, data.seed)


class Text(Kind):
    """Sentences."""

    formats = TEXT_FORMATS
    manifest = TextManifest
    embedded = "text.txt"
    embedded_bytes = 3 * 10**6
    _RECORDS_OF_TEXT = 2  # bytes of records for a byte of text, per pass

    def embed(self, folder: Path) -> None:
        from reperf.data.text.embedded_text import make_text  # noqa: PLC0415

        make_text(folder / "text.txt")

    def check(self, data: Data) -> None:
        if data.text:
            check_text(data.text)
        if data.vocabulary:
            read_vocabulary(data.vocabulary, data.vocabulary_size)

    def convert(self, data: Data, folder: Path, format_name: str, workers: int) -> None:
        from reperf.data.text.convert_text import convert  # noqa: PLC0415

        convert(data.text_settings, folder, format_name, workers=workers)

    def record_bytes(self, data: Data) -> int:
        """From the size of all files, of which text has few."""
        assert data.text
        files = data.text.rglob("*") if data.text.is_dir() else [data.text]
        size = sum(path.stat().st_size for path in files if path.is_file())
        return int(size * self._RECORDS_OF_TEXT * data.passes)

    def _is_of(self, data: Data, found: TextManifest) -> bool:
        return found.is_of(data.text_settings)


KINDS: dict[str, Kind] = {"images": Images(), "text": Text()}
