"""The tables of docs/log-formats.md, made from the formats.

python -m reperf.logs.formats_page docs/log-formats.md writes them anew, and leaves the text around.
"""

import re
import sys
from importlib import import_module
from pathlib import Path

from reperf.files import whole_file
from reperf.logs.format import NOTES, Format
from reperf.logs.formats import formats, mlperf

LINES = ("format", "a line that identifies it")
METHODS = ("format", "counts from", "time from", "speed of", "published method")
"""The heads of the two tables."""


def with_tables(page: str) -> str:
    """The page with both tables as they should be."""
    for head, row in ((LINES, _lines), (METHODS, _methods)):
        top = _row(head)
        rows = [row(log_format) for log_format in formats().values()]
        table = "\n".join([top, "|" + "---|" * len(head), *map(_row, rows), ""])
        page = re.sub(
            rf"^{re.escape(top)}\n(?:\|.*\n)*", table.replace("\\", r"\\"), page, flags=re.M
        )
    return page


def shown(name: str) -> list[str]:
    """The lines that a format's module shows in its docstring, or lists as LINES."""
    if name in mlperf.LINES:
        return [mlperf.LINES[name]]
    words = import_module(f"reperf.logs.formats.{name.replace('-', '_')}").__doc__ or ""
    return [line.strip() for line in words.splitlines() if line.startswith("    ")]


def _lines(log_format: Format) -> tuple[str, ...]:
    # A bar ends a cell of a table even within code.
    lines = (re.sub(r"\|", r"\\|", line.expandtabs(1)) for line in shown(log_format.name))
    return f"`{log_format.name}`", "<br>".join(f"`{line}`" for line in lines)


def _methods(log_format: Format) -> tuple[str, ...]:
    known = {
        "counting": str(log_format.counts_from),
        "timing": "time stamps" if log_format.clock else "nothing: refused",
        "speed_of": _speed(log_format),
        "extractor": "none",
    }
    return f"`{log_format.name}`", *(log_format.notes.get(name, known[name]) for name in NOTES)


def _speed(log_format: Format) -> str:
    if "rate" not in log_format.line.groupindex:
        return "none"
    return "each device" if "world_size" in log_format.rate_times else "all"


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    made = with_tables(path.read_text(encoding="utf-8"))
    with whole_file(path) as stream:
        stream.write(made)
