"""How a set becomes parts, whatever its kind: records, the files beside them, the manifest."""

import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import IO, Any, Generic, TypeVar

from google_crc32c import extend

from reperf.data.kind import MANIFEST, Kind, Manifest, Part
from reperf.errors import ReperfError
from reperf.files import whole_file

Item = TypeVar("Item")
Counts = Mapping[str, int | list[str]]
"""What a part holds, by the manifest's names: numbers, or lists of names."""


@dataclass(frozen=True)
class Format(Generic[Item]):
    """How the items of a part, such as images, are written."""

    frame: Callable[[Item], list[bytes]]
    """The pieces of an item's record. Joined, they are the record; they are kept apart so that what
    is large, such as an image, is never copied. Raises ValueError for an item that the format
    cannot hold."""
    suffix: str = ""  # of the part's name
    sidecars: Mapping[str, Callable[[Item, int, int], str]] = field(default_factory=dict)
    """Suffix of a file beside the part -> its line for an item, given the item and the offset and
    size of its record in bytes."""
    finish: Callable[[Path, Sequence[Part]], None] = lambda _folder, _parts: None
    """Writes the files that cover all parts, given their folder and the parts."""


@dataclass
class PartWriter(Generic[Item]):
    """Appends items, such as images, to a part."""

    format: Format[Item]  # how they are written
    stream: IO[bytes]  # where the records go
    sidecars: Sequence[IO[str]]  # the files beside the part, in the format's order
    bytes: int = 0  # written so far
    crc32c: int = 0  # of these bytes

    def append(self, item: Item) -> None:
        """Write an item's record and its lines beside the part; ValueError if it cannot be held."""
        offset = self.bytes
        for piece in self.format.frame(item):
            self.stream.write(piece)
            self.crc32c = extend(self.crc32c, piece)
            self.bytes += len(piece)
        for sidecar, line in zip(self.sidecars, self.format.sidecars.values(), strict=True):
            sidecar.write(line(item, offset, self.bytes - offset))


@dataclass(frozen=True)
class Conversion(Generic[Item]):
    """How a set is converted."""

    format: Format[Item]  # how items are written
    fill: Callable[[int, PartWriter[Item]], Counts]
    """Appends the items of a part, given its number from 0, and returns its counts."""
    refusal: str = ""  # what a part lacks if it counts nothing, and what is allowed
    fields: Mapping[str, object] = field(default_factory=dict)
    """More fields of the manifest. They stand before the counts; an empty field of the name of a
    count keeps a place for it."""
    vocabulary: Sequence[str] = ()  # the lines of vocab.txt, which lies beside the parts

    def run(self, kind: Kind, folder: Path, format_name: str, workers: int) -> Manifest:
        """Write all parts and, last, manifest.json; an earlier conversion in the folder is removed.

        So is this one if it fails: a part counts nothing, or `fill` refuses.
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


Result = TypeVar("Result")
SECONDS_BETWEEN_LINES = 10

_given: list[Callable[[int], Any]] = []
"""A worker's work. The fork brings it: pickling a million names takes long."""


def run_parts(work: Callable[[int], Result], parts: int, workers: int, title: str) -> list[Result]:
    """Do the work for every part, numbered from 0; the results are in the parts' order.

    Standard error says how far the work is, every ten seconds and at the end. When a part fails or
    this process is interrupted or killed, the workers end at once. What one raises is raised here.
    """
    # Forked, not spawned: the script of a Snakemake rule cannot be imported by a new process.
    context = multiprocessing.get_context("fork")
    wanted, held = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(min(workers, parts), context, _begin, (work, wanted, held))
    begin = last = time.monotonic()
    with wanted, pool, held:
        futures = [pool.submit(_do, part) for part in range(parts)]
        pending = set(futures)
        try:
            while pending:
                finished, pending = wait(pending, SECONDS_BETWEEN_LINES, FIRST_COMPLETED)
                for future in filter(finished.__contains__, futures):  # the first part's fault
                    future.result()
                now, done = time.monotonic(), parts - len(pending)
                if 0 < done < parts and now - last >= SECONDS_BETWEEN_LINES:
                    last = now
                    left = f"about {(now - begin) * len(pending) / done:.0f} s left"
                    print(f"{title}: {done} of {parts} parts, {left}", file=sys.stderr, flush=True)
        except BrokenProcessPool:
            raise ReperfError("a worker process was killed; memory may have run out") from None
    print(
        f"{title}: {parts} parts in {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True
    )
    return [future.result() for future in futures]


def _begin(work: Callable[[int], Any], wanted: Connection, held: Connection) -> None:
    """Make a worker ready; it ends when its parent closes its end of the pipe, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    held.close()
    Thread(target=lambda: (wanted.poll(None), os._exit(0)), daemon=True).start()
    _given[:] = [work]


def _do(part: int) -> Any:  # noqa: ANN401 - what the work returns
    return _given[0](part)
