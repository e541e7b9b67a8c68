"""Convert lines of clicks to parts of rows."""

from pathlib import Path

import numpy as np

from reperf.data.clicks.kind import Clicks
from reperf.data.clicks.lines import LAYOUT, BadLine, rows_of
from reperf.data.manifest import Manifest, Written
from reperf.data.parallel import run_parts
from reperf.data.part import Format, all_or_nothing, new_part
from reperf.data.text_files import PIECE, Pieces
from reperf.errors import ReperfError
from reperf.files import reading

ROWS = Format[np.ndarray](lambda rows: [rows.tobytes()])


def convert(settings: Clicks, output: Path, format_name: str, *, workers: int) -> Manifest:
    """Convert a file of clicks to rows: part-00000 and so on, manifest.json.

    Workers read the file in pieces of whole lines; each part holds consecutive pieces.

    Raises:
        ReperfError: a line is refused, there are too few for the parts, or a file cannot be read or
            written.
    """
    assert settings.clicks
    clicks = settings.clicks
    lines = Pieces(clicks, settings.parts, f"lines of {LAYOUT}")

    def write_part(part: int) -> Written:
        samples = clicked = 0
        with new_part(output, part, ROWS) as records:
            for number in lines.of_part(part):
                begin, end = lines.edges(number)
                for _, content in lines.between(begin, end):
                    try:
                        rows = rows_of(content.encode())
                    except BadLine as bad:
                        line = _lines_before(clicks, begin) + bad.line + 1
                        raise ReperfError(f"{clicks}, line {line}: {bad}") from None
                    records.append(rows)
                    samples += len(rows)
                    clicked += int(rows["label"].sum())
        if not samples:
            raise ReperfError(
                f"{clicks}: part {part} of {settings.parts} would hold no line; allowed: at least "
                "one for each part"
            )
        return records.summary(samples=samples, clicked=clicked)

    with all_or_nothing(output):
        written = run_parts(write_part, settings.parts, workers, f"clicks to {format_name}")
        return settings.write_manifest(output, format_name, written)


def _lines_before(path: Path, offset: int) -> int:
    """How many lines end before an offset of a file; asked only for a refusal."""
    with reading(path), path.open("rb") as stream:
        pieces = (min(PIECE, offset - at) for at in range(0, offset, PIECE))
        return sum(stream.read(size).count(b"\n") for size in pieces)
