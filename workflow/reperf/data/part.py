"""Writing one part: its records, the files beside it, its checksum."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from google_crc32c import extend

from reperf.data.framing import Format
from reperf.data.image import Image
from reperf.data.manifest import Part
from reperf.files import whole_file


class PartWriter:
    """Appends images to a part.

    Args:
        name: the part's file name.
        records: where the records go.
        frame: what makes the pieces of an image's record.
        sidecars: each file beside the part -> its line for an image.
    """

    def __init__(
        self,
        name: str,
        records: IO[bytes],
        frame: Callable[[Image], list[bytes]],
        sidecars: Mapping[IO[str], Callable[[Image, int, int], str]],
    ) -> None:
        self._name = name
        self._records = records
        self._frame = frame
        self._sidecars = sidecars
        self._crc32c = 0
        self._images = 0
        self._bytes = 0

    def append(self, image: Image) -> None:
        """Write an image's record and its lines beside the part.

        Raises:
            ValueError: the format cannot hold the image.
        """
        offset = self._bytes
        for piece in self._frame(image):
            self._records.write(piece)
            self._crc32c = extend(self._crc32c, piece)
            self._bytes += len(piece)
        for sidecar, line in self._sidecars.items():
            sidecar.write(line(image, offset, self._bytes - offset))
        self._images += 1

    def summary(self) -> Part:
        """What the manifest says about the part."""
        return Part(
            name=self._name,
            images=self._images,
            bytes=self._bytes,
            crc32c=f"{self._crc32c:08x}",
        )


@contextmanager
def new_part(stem: Path, record_format: Format) -> Iterator[PartWriter]:
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
