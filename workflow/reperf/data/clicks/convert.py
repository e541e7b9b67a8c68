"""Convert lines of clicks to parts of rows: the one call behind the rule."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reperf.data.bar import progress
from reperf.data.clicks.lines import LAYOUT, ROW, BadLine, rows_of
from reperf.data.clicks.manifest import ClickManifest, ClickSettings
from reperf.data.parallel import Tick, run_parts
from reperf.data.part import Format, Written, all_or_nothing, new_part
from reperf.errors import ReperfError
from reperf.files import reading

ROWS = Format[np.ndarray](lambda rows: [rows.tobytes()])
PIECE = 1 << 20
"""Bytes of lines that are converted at a time."""
LONGEST_LINE = 1 << 12
_GZIP = b"\x1f\x8b"


def convert(
    settings: ClickSettings, output: Path, format_name: str, *, workers: int
) -> ClickManifest:
    """Convert a file of clicks to rows: part-00000 and so on, manifest.json.

    The file is cut into pieces of whole lines, of which each part has neighbouring ones. The bytes
    depend on the file and the number of parts, not on the number of workers. What an earlier
    conversion left in the folder is removed.

    Raises:
        ReperfError: a line is refused, there are too few for the parts, or a file cannot be read or
            written.
    """
    clicks = Path(settings.clicks)
    with reading(clicks), clicks.open("rb") as stream:
        size, begin = clicks.stat().st_size, stream.read(len(_GZIP))
    if not size or begin == _GZIP:
        found = "compressed by gzip" if size else "an empty file"
        raise ReperfError(f"{clicks}: {found}; allowed: lines of {LAYOUT}")
    share = -(-size // (settings.parts * PIECE))
    lines = _Lines(clicks, size, settings.parts * share)

    def write_part(part: int, tick: Tick) -> Written:
        samples = clicked = 0
        with new_part(output, part, ROWS) as records:
            for number in range(part * share, (part + 1) * share):
                rows = lines.rows(number)
                records.append(rows)
                samples += len(rows)
                clicked += int(rows["label"].sum())
                tick()
        if not samples:
            raise ReperfError(
                f"{clicks}: part {part} of {settings.parts} would hold no line; allowed: at least "
                "one for each part"
            )
        return records.summary(samples=samples, clicked=clicked)

    with all_or_nothing(output):
        with progress(f"pieces of clicks to {format_name}", lines.pieces) as watch:
            written = run_parts(write_part, settings.parts, workers, watch)
        return ClickManifest.of_parts(output, written, format=format_name, settings=settings)


@dataclass(frozen=True)
class _Lines:
    """A file of lines, cut into pieces."""

    clicks: Path
    size: int
    pieces: int

    def rows(self, number: int) -> np.ndarray:
        """The rows of a piece: near equal in bytes, it begins with a line, as the next does."""
        begin, end = (self._edge(one) for one in (number, number + 1))
        try:
            return rows_of(self._read(begin, end - begin)) if begin < end else np.empty(0, ROW)
        except BadLine as bad:
            line = self._lines_before(begin) + bad.line + 1
            raise ReperfError(f"{self.clicks}, line {line}: {bad}") from None

    def _edge(self, number: int) -> int:
        """Where a piece begins: at the first line from its even share on."""
        even = self.size * number // self.pieces
        if even in (0, self.size):
            return even
        rest, ended, _ = self._read(even - 1, LONGEST_LINE).partition(b"\n")
        if not ended and len(rest) == LONGEST_LINE:
            line = self._lines_before(even) + 1
            raise ReperfError(
                f"{self.clicks}, line {line}: more than {LONGEST_LINE} bytes; allowed: {LAYOUT}"
            )
        return min(even + len(rest), self.size)

    def _read(self, offset: int, size: int) -> bytes:
        with reading(self.clicks), self.clicks.open("rb") as stream:
            stream.seek(offset)
            return stream.read(size)

    def _lines_before(self, offset: int) -> int:
        """How many lines end before an offset; asked only for a refusal."""
        return sum(
            self._read(at, min(PIECE, offset - at)).count(b"\n") for at in range(0, offset, PIECE)
        )
