"""Writing one part: its records, the files beside it, its checksum."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Generic

from google_crc32c import extend

from reperf.data.framing import Format, Item, Written
from reperf.files import whole_file


class PartWriter(Generic[Item]):
    """Appends items, such as images, to a part.

    Args:
        name: the part's file name.
        records: where the records go.
        frame: what makes the pieces of an item's record.
        sidecars: each file beside the part -> its line for an item.
    """

    def __init__(
        self,
        name: str,
        records: IO[bytes],
        frame: Callable[[Item], list[bytes]],
        sidecars: Mapping[IO[str], Callable[[Item, int, int], str]],
    ) -> None:
        self._name = name
        self._stream = records
        self._frame = frame
        self._sidecars = sidecars
        self._crc32c = 0
        self._records = 0
        self._bytes = 0

    def append(self, item: Item) -> None:
        """Write an item's record and its lines beside the part.

        Raises:
            ValueError: the format cannot hold the item.
        """
        offset = self._bytes
        for piece in self._frame(item):
            self._stream.write(piece)
            self._crc32c = extend(self._crc32c, piece)
            self._bytes += len(piece)
        for sidecar, line in self._sidecars.items():
            sidecar.write(line(item, offset, self._bytes - offset))
        self._records += 1

    def summary(self) -> Written:
        """What the manifest says about the part."""
        return Written(self._name, self._records, self._bytes, f"{self._crc32c:08x}")


@contextmanager
def new_part(stem: Path, record_format: Format[Item]) -> Iterator[PartWriter[Item]]:
    """Open a part; its files get their names only when the block ends well.

    The files need not be on the disk by then: waiting for the disk would make a conversion several
    times slower than a copy. The manifest's checksums show what a power cut has cost.

    Args:
        stem: the part's path without its suffix.
        record_format: how it is written.
    """
    with ExitStack() as files:

        def create(suffix: str, mode: str) -> IO:
            path = stem.with_name(stem.name + suffix)
            return files.enter_context(whole_file(path, mode, durable=False))

        yield PartWriter(
            stem.name + record_format.suffix,
            create(record_format.suffix, "wb"),
            record_format.frame,
            {create(suffix, "w"): line for suffix, line in record_format.sidecars.items()},
        )


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
