"""What was measured and what was refused: a table for people, rows for a spreadsheet."""

import csv
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from io import StringIO
from pathlib import PurePath

from reperf.layout import RUN_RECORD
from reperf.logs.recognise import NO_FORMAT
from reperf.measuring.columns import Columns, folded
from reperf.measuring.folders import OfFolder
from reperf.measuring.measure import Measurement
from reperf.text import field_of, printable

HEADER = ("throughput", "unit", "window", "printed", "every", "widest", "batch", "format", "log")
"""The columns that people see; iterations are as the log numbers them."""
FOLDERS = ("n", "median", "min..max", "unit", "batch", "folder")
"""The columns of the medians."""
_LEFT = {"unit", "format", "log", "folder"}
_SELDOM = ("left out", "to train")
"""Further columns, before the format, where a log has anything for them: how many evaluations the
window goes without, with their time, and the time to train."""
_SPARED = ("every", "printed", "format", "widest", "batch", "to train")
"""Which columns a narrow terminal goes without, first ones first."""
_BELOW = "    "
"""What a line begins with that belongs to the row above it."""
_NUMBER = re.compile(r"(?<![\w.-])[-+]?\d[\d.]*(?:e[-+]?\d+)?(?![\w.]*\w)")


def table(
    found: Sequence[Measurement],
    folders: Sequence[OfFolder] = (),
    *,
    width: int | None = None,
    files: bool = False,
) -> Iterator[str]:
    """The lines of a table: what was measured, the medians, then what was refused, by its kind.

    The most frequent kind of refusal comes first. Where all runs of a kind have the same reason,
    its heading says it.

    Args:
        found: what each run gave.
        folders: the median of each folder; shown if one of them has several runs, or copies.
        width: how long lines may be; None: as long as they are.
        files: whether to show every run that was refused, and not only the first of a kind.
    """
    folder = _common_folder({one.log for one in found})
    several = {one.log for one in found if one.run > 1}
    groups = _groups(found)
    shown = {kind: some if files or not kind else some[:1] for kind, some in groups.items()}
    seldom = [name for name in _SELDOM if any(_extra(name, one) for one in found)]
    at = HEADER.index("format")
    header = (*HEADER[:at], *seldom, *HEADER[at:])
    rows = {
        kind: [_row(one, folder, several, seldom) for one in some] for kind, some in shown.items()
    }
    spared = [name for name in _SPARED if name in header]
    columns = Columns(
        header, (row for some in rows.values() for row in some), set(header) - _LEFT, spared, width
    )
    if folder:
        yield from folded(printable(f"in {folder}"), width)
        yield ""
    yield columns.line(header)
    for kind, some in groups.items():
        yield ""
        yield from folded(printable(f"{len(some)} {_heading(kind, some)}"), width)
        differ = len(_reasons(some)) > 1
        for one, row in zip(shown[kind], rows[kind], strict=True):
            yield columns.line(row)
            if differ:
                yield from folded(printable(one.reason), width, _BELOW)
        if more := len(some) - len(rows[kind]):
            yield f"{_BELOW}and {more} more"
        copies = 0 if kind else len(some) - sum(one.n for one in folders)
        if not kind and folders and (copies or any(one.n > 1 for one in folders)):
            yield ""
            yield from _medians(folders, folder, width)
            if copies:
                said = f"left out of the medians, as copies in the same folder: {copies}"
                yield from folded(said, width, _BELOW)
    yield ""
    for line in _closing(groups, files=files):
        yield from folded(printable(line), width)


def _medians(folders: Sequence[OfFolder], common: str, width: int | None) -> Iterator[str]:
    """The median and the spread of each folder; below it, what tells it apart, if need be."""
    found = [
        (
            str(one.n),
            f"{one.median:.2f}",
            f"{one.low:.2f}..{one.high:.2f}",
            printable(one.unit),
            "" if one.batch is None else str(one.batch),
            printable(_inside(one.folder, common)),
        )
        for one in folders
    ]
    apart = [printable(one.apart) for one in folders]
    whole = [
        (*row, f"{name}: {facts}" if facts else name)
        for (*row, name), facts in zip(found, apart, strict=True)
    ]
    right = set(FOLDERS) - _LEFT
    columns = Columns(FOLDERS, whole, right)
    below = width is not None and max(map(len, map(columns.line, whole)), default=0) > width
    if below:
        columns = Columns(FOLDERS, found, right, ("batch",), width)
    yield columns.line(FOLDERS)
    for row, facts in zip(found if below else whole, apart, strict=True):
        yield columns.line(row)
        if below and facts:
            yield from folded(facts, width, _BELOW)


def kind_of(measured: Measurement) -> str:
    """What a reason has in common with others: its text up to the colon, without the numbers.

    Returns:
        The kind; empty for a run that was measured.
    """
    if measured.status == "ok":
        return ""
    reason = measured.reason
    for path in (measured.log, str(PurePath(measured.log).parent / RUN_RECORD)):
        reason = reason.removeprefix(f"{path}: ")
    return _NUMBER.sub("..", reason.partition(": ")[0]) or "no reason"


def csv_lines(found: Iterable[Measurement]) -> Iterator[str]:
    """A header, and a row for each run, with the fields of a Measurement."""
    names = [field.name for field in fields(Measurement)]
    yield ",".join(names)
    for one in found:
        line = StringIO()
        csv.writer(line, lineterminator="").writerow(map(_field, asdict(one).values()))
        yield line.getvalue()


def _groups(found: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    """Runs by the kind of their verdict, those that were measured first."""
    groups = defaultdict(list)
    for one in found:
        groups[kind_of(one)].append(one)
    order = sorted(groups, key=lambda kind: (kind != "", -len(groups[kind]), kind))
    return {kind: groups[kind] for kind in order}


def _reasons(found: Iterable[Measurement]) -> set[str]:
    return {one.reason for one in found}


def _heading(kind: str, found: Sequence[Measurement]) -> str:
    if not kind:
        return "measured"
    same = _reasons(found)
    return f"refused: {kind if len(same) > 1 else same.pop()}"


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


def _row(
    one: Measurement, folder: str, several: set[str], seldom: Iterable[str]
) -> tuple[str, ...]:
    """A run as a row.

    Args:
        one: what it gave.
        folder: in which all logs lie.
        several: the logs that hold more than one run.
        seldom: the further columns.
    """
    log = _inside(one.log, folder)
    log += f" run {one.run}" if one.log in several else ""
    printed = one.first_printed is not None
    return tuple(
        map(
            printable,
            (
                "-" if one.throughput is None else f"{one.throughput:.2f}",
                "" if one.throughput is None else one.unit or "",
                _span(one.first, one.last),
                f"{one.first_printed}..{one.last_printed}" if printed else "",
                "" if one.interval is None else str(one.interval),
                _span(*(one.widest or (None, None))),
                "" if one.global_batch is None else str(one.global_batch),
                *(_extra(name, one) for name in seldom),
                one.format or "",
                log,
            ),
        )
    )


def _extra(name: str, one: Measurement) -> str:
    """What a run has for one of the further columns; mostly nothing."""
    if name == "to train":
        return "" if one.time_to_train is None else f"{one.time_to_train:.1f} s"
    return f"{one.evaluations}: {one.evaluated:.4g} s" if one.evaluations else ""


def _span(first: int | None, last: int | None) -> str:
    return "" if first is None else f"{first}:{last}"


def _closing(groups: Mapping[str, Sequence[Measurement]], *, files: bool) -> Iterator[str]:
    """How many were measured, how many refused; and what would show or measure more of them."""
    refused = Counter({kind: len(some) for kind, some in groups.items() if kind})
    why = "; ".join(f"{count} {kind}" for kind, count in refused.most_common())
    said = f"{len(groups.get('', ()))} measured, {refused.total()} refused"
    yield f"{said}: {why}" if why and files else said
    if not files and NO_FORMAT.partition(": ")[0] in refused:
        yield "docs/log-formats.md lists the known formats; --pattern describes any other"
    if not files and refused.total() > len(refused):
        yield "--files shows every log that was refused"
    refusals = (one for kind, some in groups.items() if kind for one in some)
    if others := [one.widest for one in refusals if one.widest and _has_another(one)]:
        spans = {_span(*ends) for ends in others}
        such = ", such as " if len(spans) > 1 else ": "
        yield (
            f"--window all takes another window in {len(others)} of the refused"
            f"{such}{_span(*others[0])}"
        )


def _has_another(one: Measurement) -> bool:
    """Whether a log allows a window that does not hold the one in which it was refused."""
    if one.widest is None or one.first is None or one.last is None:
        return False
    start, stop = one.widest
    aligned = {(end - start) % (one.interval or 1) for end in (one.first, one.last)} == {0}
    return not (start <= one.first and one.last <= stop and aligned)


def _field(value: object) -> str:
    """A value as measurements.csv writes it; a pair with a colon, a mapping with semicolons."""
    if isinstance(value, tuple | list):
        return ":".join(map(str, value))
    if isinstance(value, dict):
        value = "; ".join(f"{name}: {teller}" for name, teller in value.items())
    return field_of(value)
