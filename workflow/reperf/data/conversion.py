"""How a set becomes parts, whatever its kind: records, the files beside them, the manifest."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

from google_crc32c import extend

from reperf.data.kind import MANIFEST, Kind, Manifest, Part
from reperf.data.parallel import run_parts
from reperf.errors import ReperfError
from reperf.files import whole_file

Item = TypeVar("Item")
Counts = Mapping[str, int | list[str]]
"""What a part holds, by the manifest's names: numbers, or lists of names."""


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
    finish: Callable[[Path, Sequence[Part]], None] = lambda _folder, _parts: None


@dataclass
class PartWriter(Generic[Item]):
    """Appends items, such as images, to a part.

    Attributes:
        format: how they are written.
        stream: where the records go.
        sidecars: the files beside the part, in the format's order.
        bytes: written so far.
        crc32c: of these bytes.
    """

    format: Format[Item]
    stream: IO[bytes]
    sidecars: Sequence[IO[str]]
    bytes: int = 0
    crc32c: int = 0

    def append(self, item: Item) -> None:
        """Write an item's record and its lines beside the part.

        Raises:
            ValueError: the format cannot hold the item.
        """
        offset = self.bytes
        for piece in self.format.frame(item):
            self.stream.write(piece)
            self.crc32c = extend(self.crc32c, piece)
            self.bytes += len(piece)
        for sidecar, line in zip(self.sidecars, self.format.sidecars.values(), strict=True):
            sidecar.write(line(item, offset, self.bytes - offset))


@dataclass(frozen=True)
class Conversion(Generic[Item]):
    """How a set is converted.

    Attributes:
        format: how items are written.
        fill: appends the items of a part, given its number from 0, and returns its counts.
        refusal: what a part lacks if it counts nothing, and what is allowed.
        fields: more fields of the manifest. They stand before the counts; an empty field of the
            name of a count keeps a place for it.
        vocabulary: the lines of vocab.txt, which lies beside the parts.
    """

    format: Format[Item]
    fill: Callable[[int, PartWriter[Item]], Counts]
    refusal: str = ""
    fields: Mapping[str, object] = field(default_factory=dict)
    vocabulary: Sequence[str] = ()

    def run(self, kind: Kind, folder: Path, format_name: str, workers: int) -> Manifest:
        """Write all parts and, last, manifest.json: as indented JSON.

        An earlier conversion in the folder is removed, and so is this one if it fails.

        Raises:
            ReperfError: a part counts nothing, `fill` refuses, or a file cannot be written.
        """

        def write(number: int) -> tuple[Part, Counts]:
            name = f"part-{number:05d}"
            with self._new_part(folder / name) as part:
                counts = self.fill(number, part)
                if self.refusal and not any(counts.values()):
                    raise ReperfError(
                        f"{kind.source}: part {number} of {kind.parts} would hold {self.refusal}"
                    )
            samples = {kind.counted: counts[kind.counted]} if kind.counted else {}
            summary = {"name": name + self.format.suffix, "bytes": part.bytes}
            summary |= {"crc32c": f"{part.crc32c:08x}", **samples}
            return Part(**summary), counts

        _clear(folder)
        try:
            if self.vocabulary:
                with whole_file(folder / "vocab.txt") as stream:
                    stream.writelines(f"{line}\n" for line in self.vocabulary)
            title = f"{kind.kind} to {format_name}"
            parts, counts = zip(*run_parts(write, kind.parts, workers, title), strict=True)
            self.format.finish(folder, parts)
            content: dict[str, Any] = {"manifest_version": 1, "format": format_name}
            content |= {**kind.described(), **self.fields}
            for name in counts[0]:  # the sum of numbers, or all names in order
                every: list[Any] = [of_part[name] for of_part in counts]
                is_number = isinstance(every[0], int)
                content[name] = sum(every) if is_number else sorted(chain.from_iterable(every))
            content["bytes"] = sum(part.bytes for part in parts)
            content["parts"] = [part.model_dump() for part in parts]
            with whole_file(folder / MANIFEST) as stream:
                json.dump(content, stream, indent=1, ensure_ascii=False)
                stream.write("\n")
            return Manifest.model_validate(content)
        except BaseException:
            _clear(folder)
            raise

    @contextmanager
    def _new_part(self, path: Path) -> Iterator[PartWriter[Item]]:
        """Open a part; its files get their names only when the block ends well.

        The files need not be on the disk by then: waiting for the disk would make a conversion
        several times slower than a copy. The manifest's checksums show what a power cut has cost.
        """
        with ExitStack() as files:

            def create(suffix: str, mode: str) -> IO[Any]:
                name = path.with_name(path.name + suffix)
                return files.enter_context(whole_file(name, mode, durable=False))

            records = create(self.format.suffix, "wb")
            sidecars = [create(suffix, "w") for suffix in self.format.sidecars]
            yield PartWriter(self.format, records, sidecars)


def _clear(folder: Path) -> None:
    # The manifest goes first: as long as it is there, all parts are whole.
    for pattern in (MANIFEST, "all.idx", "vocab.txt", "part-*", ".*.partial"):
        for path in folder.glob(pattern):
            path.unlink()
