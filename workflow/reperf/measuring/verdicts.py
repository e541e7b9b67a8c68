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
from reperf.measuring.measure import Measurement
from reperf.text import field_of, printable

HEADER = ("throughput", "unit", "window", "printed", "every", "widest", "batch", "format", "log")
"""The columns that people see; iterations are as the log numbers them."""
_RIGHT = {"throughput", "window", "printed", "every", "widest", "batch"}
_NUMBER = re.compile(r"(?<![\w.-])[-+]?\d[\d.]*(?:e[-+]?\d+)?(?![\w.]*\w)")


def table(found: Sequence[Measurement]) -> Iterator[str]:
    """The lines of a table: what was measured, then what was refused, the most frequent kind first.

    Where all runs of a group have the same reason, its heading says it once.
    """
    folder = _common_folder({one.log for one in found})
    several = {one.log for one in found if one.run > 1}
    groups = _groups(found)
    rows = {}
    for kind, some in groups.items():
        differ = len(_reasons(some)) > 1
        rows[kind] = [_row(one, folder, several, of_its_own=differ) for one in some]
    cells = [HEADER, *(row for some in rows.values() for row in some)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    if folder:
        yield printable(f"in {folder}")
        yield ""
    yield _aligned(HEADER, widths)
    for kind, some in groups.items():
        yield ""
        yield printable(f"{len(some)} {_heading(kind, some)}")
        yield from (_aligned(row, widths) for row in rows[kind])
    yield ""
    yield from map(printable, _closing(groups))


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


def _row(one: Measurement, folder: str, several: set[str], *, of_its_own: bool) -> tuple[str, ...]:
    """A run as a row.

    Args:
        one: what it gave.
        folder: in which all logs lie.
        several: the logs that hold more than one run.
        of_its_own: whether the reason must be said here.
    """
    log = one.log.removeprefix(f"{folder}/") if folder else one.log
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
                one.format or "",
                f"{log}: {one.reason}" if of_its_own else log + _left_out(one),
            ),
        )
    )


def _left_out(one: Measurement) -> str:
    """What is missing in the window's time."""
    if one.status != "ok" or not one.evaluations:
        return ""
    return f" (evaluations left out: {one.evaluations}, {one.evaluated:.6g} s)"


def _span(first: int | None, last: int | None) -> str:
    return "" if first is None else f"{first}:{last}"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (
        text.rjust(width) if name in _RIGHT else text.ljust(width)
        for name, text, width in zip(HEADER, row, widths, strict=True)
    )
    return "  ".join(cells).rstrip()


def _closing(groups: Mapping[str, Sequence[Measurement]]) -> Iterator[str]:
    """How many were measured, how many refused and why; and what would measure more of them."""
    refused = Counter({kind: len(some) for kind, some in groups.items() if kind})
    why = "; ".join(f"{count} {kind}" for kind, count in refused.most_common())
    said = f"{len(groups.get('', ()))} measured, {refused.total()} refused"
    yield f"{said}: {why}" if why else said
    others = sum(_has_another(one) for kind, some in groups.items() if kind for one in some)
    if others:
        allow = "run allows" if others == 1 else "runs allow"
        yield f"{others} refused {allow} another window: --window all takes it, the column widest"


def _has_another(one: Measurement) -> bool:
    """Whether a log allows a window that does not hold the one in which it was refused."""
    if one.widest is None or one.first is None:
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
