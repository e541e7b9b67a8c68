"""Writing one part: its records, the files beside it, its checksum."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

from google_crc32c import extend

from reperf.data.manifest import Written
from reperf.files import whole_file

Item = TypeVar("Item")


@dataclass(frozen=True)
class Format(Generic[Item]):
    """How the items of a part, such as images, are written.

    Attributes:
        frame: the pieces of an item's record. Joined, they are the record; they are kept apart so
            that what is large, such as an image, is never copied. Raises ValueError for an item
            that the format cannot hold.
        suffix: of the part's name.
        sidecars: suffix of a file beside the part -> its line for an item, given the item and the
            offset and size of its record in bytes.
        finish: writes the files that cover all parts, given their folder and the parts.
    """

    frame: Callable[[Item], list[bytes]]
    suffix: str = ""
    sidecars: Mapping[str, Callable[[Item, int, int], str]] = field(default_factory=dict)
    finish: Callable[[Path, Sequence[Written]], None] = lambda _folder, _parts: None


@dataclass
class PartWriter(Generic[Item]):
    """Appends items, such as images, to a part.

    Attributes:
        name: the part's file name.
        stream: where the records go.
        format: how they are written.
        sidecars: the files beside the part, in the format's order.
    """

    name: str
    stream: IO[bytes]
    format: Format[Item]
    sidecars: Sequence[IO[str]]
    _bytes: int = 0
    _crc32c: int = 0

    def append(self, item: Item) -> None:
        """Write an item's record and its lines beside the part.

        Raises:
            ValueError: the format cannot hold the item.
        """
        offset = self._bytes
        for piece in self.format.frame(item):
            self.stream.write(piece)
            self._crc32c = extend(self._crc32c, piece)
            self._bytes += len(piece)
        for sidecar, line in zip(self.sidecars, self.format.sidecars.values(), strict=True):
            sidecar.write(line(item, offset, self._bytes - offset))

    def summary(self, **counts: int) -> Written:
        """What the manifest says about the part; counts are by the field of the manifest."""
        return Written(self.name, self._bytes, f"{self._crc32c:08x}", counts)


@contextmanager
def new_part(output: Path, part: int, record_format: Format[Item]) -> Iterator[PartWriter[Item]]:
    """Open a part, such as part-00000; its files get their names only when the block ends well.

    The files need not be on the disk by then: waiting for the disk would make a conversion several
    times slower than a copy. The manifest's checksums show what a power cut has cost.

    Args:
        output: the folder of all parts.
        part: its number, from 0.
    """
    stem = f"part-{part:05d}"
    with ExitStack() as files:

        def create(suffix: str, mode: str) -> IO[Any]:
            path = output / (stem + suffix)
            return files.enter_context(whole_file(path, mode, durable=False))

        records = create(record_format.suffix, "wb")
        sidecars = [create(suffix, "w") for suffix in record_format.sidecars]
        yield PartWriter(stem + record_format.suffix, records, record_format, sidecars)


@contextmanager
def all_or_nothing(output: Path) -> Iterator[None]:
    """Remove an earlier conversion from a folder, and this one if it fails."""
    _clear(output)
    try:
        yield
    except BaseException:
        _clear(output)
        raise


def _clear(output: Path) -> None:
    # The manifest goes first: as long as it is there, all parts are whole.
    for pattern in ("manifest.json", "all.idx", "vocab.txt", "part-*", ".*.partial"):
        for path in output.glob(pattern):
            path.unlink()
