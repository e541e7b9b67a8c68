"""The tables of docs/log-formats.md, made from the formats.

python -m reperf.logs.formats_page docs/log-formats.md writes them anew, and leaves the text around.
"""

import ast
import inspect
import pkgutil
import re
import sys
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path

from reperf.files import write_whole
from reperf.logs import formats as package
from reperf.logs.format import Format, Prints
from reperf.logs.formats import formats

LINES = ("format", "a line that identifies it")
METHODS = ("format", "counts from", "time from", "published method")
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


@cache
def docstrings() -> dict[str, str]:
    """The docstring of each format, by its name: the text after its definition, or its module's."""
    found = {}
    for file in pkgutil.iter_modules(package.__path__):
        module = import_module(f"{package.__name__}.{file.name}")
        tree = ast.parse(inspect.getsource(module))
        for node, after in pairwise([*tree.body, None]):
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            value = vars(module).get(node.targets[0].id)
            if isinstance(value, Format):
                text = isinstance(after, ast.Expr) and ast.literal_eval(after.value)
                found[value.name] = text or module.__doc__ or ""
    return found


def _lines(log_format: Format) -> tuple[str, ...]:
    shown = re.findall(r"^ {4} *(.+)", docstrings()[log_format.name], re.M)
    # A bar ends a cell of a table even within code.
    lines = (re.sub(r"\|", r"\\|", line.rstrip().expandtabs(1)) for line in shown)
    return f"`{log_format.name}`", "<br>".join(f"`{line}`" for line in lines)


def _methods(log_format: Format) -> tuple[str, ...]:
    published = (log_format.published.__doc__ or "") if log_format.published else "none"
    own = log_format.system == "mlperf" and log_format.step_is[0] == "global_batch"
    counts = "the log's own counts" if own else str(log_format.counts_from)
    return f"`{log_format.name}`", counts, _times(log_format), published.splitlines()[0]


def _times(log_format: Format) -> str:
    if log_format.clock:
        return log_format.clock.title
    if "duration" not in log_format.line.groupindex:
        return "nothing: refused"
    if Prints.EVENLY in log_format.prints:
        return "the mean time of an iteration since the previous line"
    return "printed durations"


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    made = with_tables(path.read_text(encoding="utf-8"))
    write_whole(path, made)
