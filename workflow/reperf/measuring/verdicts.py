"""What was measured and what was refused: a table for people, rows for a spreadsheet."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import chain

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from reperf.logs.checks import SENTENCES
from reperf.measuring.folders import OfFolder
from reperf.measuring.measure import Measurement
from reperf.tables import table_of
from reperf.text import printable

HEADER = ("throughput", "unit", "window", "printed", "every", "widest", "batch", "format", "log")
"""The columns that people see; iterations are as the log numbers them."""
FOLDERS = ("n", "median", "min..max", "unit", "batch", "folder")
"""The columns of the medians."""
_LEFT = ("unit", "format", "log", "folder")
_SELDOM = ("left out", "to train")
"""Further columns, before the format, where a log has anything for them: how many evaluations the
window goes without, with their time, and the time to train."""
_NO_LIMIT = 1 << 16
WARNED, REFUSED = "measured with a warning", "refused"
_BELOW = 4
"""Spaces before a line that belongs to the one above it."""


def table(
    found: Sequence[Measurement],
    folders: Sequence[OfFolder] = (),
    *,
    width: int | None = None,
    files: bool = False,
) -> Iterator[str]:
    """The lines of a table: what was measured, the medians, then what was refused, by its code.

    The most frequent refusal comes first. A reason that all of its runs have is in its heading.

    Args:
        found: what each run gave.
        folders: the median of each folder; shown if one of them has several runs, or copies.
        width: how long lines may be; None: as long as they are.
        files: whether to show every run that was refused, and not only the first of a code.
    """
    folder = _common_folder({one.log for one in found})
    several = {one.log for one in found if one.run > 1}
    names = {id(one): _name(one, folder, several) for one in found}
    measured = [one for one in found if one.status == "ok"]

    def say(text: str, indent: int = 0) -> Iterator[str]:
        return _rendered(Padding(Text(printable(text)), (0, 0, 0, indent)), width)

    if folder:
        yield from chain(say(f"in {folder}"), say(""))
    if measured:
        yield from say(f"{len(measured)} measured")
        seldom = [name for name in _SELDOM if any(_extra(name, one) for one in measured)]
        header = (*HEADER[:-2], *seldom, *HEADER[-2:])
        rows = [[*_cells(one, seldom), names[id(one)]] for one in measured]
        yield from chain(_rendered(_columns(header, rows), width), say(""))
    copies = len(measured) - sum(one.n for one in folders)
    if folders and (copies or any(one.n > 1 for one in folders)):
        yield from _rendered(_columns(FOLDERS, [_of_folder(one, folder) for one in folders]), width)
        if copies:
            yield from say(
                f"left out of the medians, as copies in the same folder: {copies}", _BELOW
            )
        yield from say("")
    groups = _groups(found)
    for (what, code), some in groups.items():
        reasons = {reason for _, reason in some}
        why = SENTENCES.get(code, "") if len(reasons) > 1 else reasons.pop()
        yield from say(f"{len(some)} {what} [{code}]: {why}")
        for one, reason in some if files else some[:1]:
            yield from say(f"{names[id(one)]}{_printed(one)}", _BELOW)
            yield from say(reason, 2 * _BELOW) if reason != why else ()
        if not files and len(some) > 1:
            yield from say(f"and {len(some) - 1} more", _BELOW)
        yield from say("")
    refusals = {code: len(some) for (what, code), some in groups.items() if what == REFUSED}
    refused = sum(refusals.values())
    why = ", ".join(f"{many} {code}" for code, many in refusals.items())
    yield from say(f"{len(measured)} measured, {refused} refused" + (f": {why}" if why else ""))
    if refused:
        yield from say("docs/measuring.md#refusals says what each refusal means")
    if "unknown-format" in refusals:
        yield from say("docs/log-formats.md lists the known formats; --pattern describes any other")
    if not files and refused > len(refusals):
        yield from say("--files shows every log that was refused")


def csv_lines(found: Iterable[Measurement]) -> Iterator[str]:
    """A header, and a row for each run, with the fields of a Measurement."""
    names = [field.name for field in fields(Measurement)]
    yield from table_of([], names).splitlines()
    for one in found:
        row = {name: _field(value) for name, value in asdict(one).items()}
        yield table_of([row], names).splitlines()[1]


def _rendered(what: Table | Padding, width: int | None) -> Iterator[str]:
    console = Console(
        width=width or _NO_LIMIT, color_system=None, highlight=False, force_terminal=False
    )
    with console.capture() as captured:
        console.print(what)
    yield from (line.rstrip() for line in captured.get().splitlines())


def _columns(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    columns = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in header:
        left = name in _LEFT
        columns.add_column(
            name, justify="left" if left else "right", no_wrap=not left, overflow="fold"
        )
    for row in rows:
        columns.add_row(*(Text(printable(cell)) for cell in row))
    return columns


def _groups(
    found: Iterable[Measurement],
) -> Mapping[tuple[str, str], list[tuple[Measurement, str]]]:
    """Warnings and refusals by their code, the most frequent first: runs, each with the reason."""
    groups: dict[tuple[str, str], list[tuple[Measurement, str]]] = defaultdict(list)
    for one in found:
        for warning in one.warnings:
            code, _, text = warning.partition(": ")
            groups[WARNED, code].append((one, text))
        if one.status != "ok":
            groups[REFUSED, one.code].append((one, one.reason))
    return dict(sorted(groups.items(), key=lambda group: (group[0][0], -len(group[1]), group[0])))


def _common_folder(logs: set[str]) -> str:
    """The folder or archive in which all logs lie; empty if there is none, or only one log."""
    if len(logs) < 2 or len({os.path.isabs(log) for log in logs}) > 1:  # noqa: PTH117 - a text
        return ""
    folder = os.path.commonpath(os.path.dirname(log) for log in logs)  # noqa: PTH120 - likewise
    return folder.removesuffix(os.sep)


def _inside(name: str, folder: str) -> str:
    """A log's name, or a folder's, without the folder in which all lie."""
    if not folder or name == folder:
        return "." if folder else name
    return name.removeprefix(f"{folder}/")


def _name(one: Measurement, folder: str, several: set[str]) -> str:
    """A run's name: its log's, and its number if the log holds several."""
    return _inside(one.log, folder) + (f" run {one.run}" if one.log in several else "")


def _cells(one: Measurement, seldom: Iterable[str]) -> list[str]:
    """A run as a row, without its name."""
    return [
        f"{one.throughput:.2f}",
        one.unit or "",
        _span(one.first, one.last),
        "" if one.first_printed is None else f"{one.first_printed}..{one.last_printed}",
        "" if one.interval is None else str(one.interval),
        _span(*(one.widest or (None, None))),
        "" if one.global_batch is None else str(one.global_batch),
        *(_extra(name, one) for name in seldom),
        one.format or "",
    ]


def _printed(one: Measurement) -> str:
    """What a log prints of a run that was refused, for the end of its line."""
    said = [one.format or ""]
    if one.first_printed is not None:
        said.append(f"prints {one.first_printed}..{one.last_printed}")
    if one.interval is not None:
        said.append(f"every {one.interval}")
    if one.widest:
        said.append(f"widest window {_span(*one.widest)}")
    return f" ({', '.join(filter(None, said))})" if any(said) else ""


def _of_folder(one: OfFolder, common: str) -> list[str]:
    """The median and the spread of a folder, and what distinguishes it from others there."""
    name = _inside(one.folder, common) + (f": {one.apart}" if one.apart else "")
    batch = "" if one.batch is None else str(one.batch)
    spread = f"{one.low:.2f}..{one.high:.2f}"
    return [str(one.n), f"{one.median:.2f}", spread, one.unit, batch, name]


def _extra(name: str, one: Measurement) -> str:
    """What a run has for one of the further columns; mostly nothing."""
    if name == "to train":
        return "" if one.time_to_train is None else f"{one.time_to_train:.1f} s"
    return f"{one.evaluations}: {one.evaluated:.4g} s" if one.evaluations else ""


def _span(first: int | None, last: int | None) -> str:
    return "" if first is None else f"{first}:{last}"


def _field(value: object) -> object:
    """A value for measurements.csv: a pair with a colon, a mapping with semicolons."""
    if isinstance(value, tuple | list):
        return (":" if all(isinstance(part, int) for part in value) else "; ").join(map(str, value))
    if isinstance(value, dict):
        return "; ".join(f"{name}: {part}" for name, part in value.items())
    return value
