"""What was measured and what was refused: a table for people, rows for a spreadsheet."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import PurePath
from statistics import median

from rich.padding import Padding
from rich.text import Text

from reperf.logs.checks import SENTENCES
from reperf.logs.facts import FACT_NAMES, called, shown
from reperf.measuring.duplicates import DuplicateFinder
from reperf.measuring.found_logs import RunResult
from reperf.measuring.measure import Measurement
from reperf.tables import table_of
from reperf.terminal import rendered, table_lines
from reperf.text import printable

HEADER = ("throughput", "unit", "window", "printed", "every", "widest", "batch", "format", "log")
"""The columns that people see; iterations are as the log numbers them."""
FOLDERS = ("n", "median", "min..max", "unit", "batch", "folder")  # the columns of the medians
_LEFT = ("unit", "format", "log", "folder")
_SELDOM = ("left out", "to train")
"""Further columns, before the format, where a log has anything for them: how many evaluations the
window goes without, with their time, and the time to train."""
WARNED, REFUSED = "measured with a warning", "refused"
_SCATTERED = 1.25
"""How many times as fast as the slowest run the fastest may be; WIDE, without importing pandas."""
_BELOW = 4  # spaces before a line that belongs to the one above it
_OF_ONE_RUN = frozenset({"start_loss", "hosts", "run_start", "run_stop", "run_span"})
"""The facts that may differ between repeats of a training."""
_Setup = tuple[tuple[str, object], ...]
"""What must be the same for runs to be repeats of each other."""


def table(
    results: Sequence[RunResult], *, width: int | None = None, files: bool = False
) -> Iterator[str]:
    """The lines of a table: what was measured, the medians, then what was refused, by its code.

    Medians of folders are shown if one of them has several runs, or copies. The most frequent
    refusal comes first. A reason that all of its runs have is in its heading.

    Args:
        width: how long lines may be; None: as long as they are.
        files: whether to show every run that was refused, and not only the first of a code.
    """
    runs = [result.measured for result in results]
    folder = _common_folder({run.log for run in runs})
    several = {run.log for run in runs if run.run > 1}
    measured = [run for run in runs if run.status == "ok"]

    def name(run: Measurement) -> str:
        return _inside(run.log, folder) + (f" run {run.run}" if run.log in several else "")

    def say(text: str, indent: int = 0) -> Iterator[str]:
        return rendered(Padding(Text(printable(text)), (0, 0, 0, indent)), width)

    if folder:
        yield from say(f"in {folder}")
        yield ""
    if measured:
        yield from say(f"{len(measured)} measured")
        seldom = [column for column in _SELDOM if any(_extra(column, run) for run in measured)]
        header = (*HEADER[:-2], *seldom, *HEADER[-2:])
        rows = [[*_cells(run, seldom), name(run)] for run in measured]
        yield from table_lines(header, _LEFT, rows, width=width)
        yield ""
    medians = _medians(results, folder)
    copies = len(measured) - sum(int(n) for n, *_ in medians)
    if copies or len(medians) < len(measured):
        yield from table_lines(FOLDERS, _LEFT, medians, width=width)
        if copies:
            yield from say(
                f"left out of the medians, as copies in the same folder: {copies}", _BELOW
            )
        yield ""
    groups = _groups(runs)
    for (what, code), some in groups.items():
        reasons = {reason for _, reason in some}
        why = SENTENCES.get(code, "") if len(reasons) > 1 else reasons.pop()
        yield from say(f"{len(some)} {what} [{code}]: {why}")
        for run, reason in some if files else some[:1]:
            yield from say(f"{name(run)}{_printed(run)}", _BELOW)
            yield from say(reason, 2 * _BELOW) if reason != why else ()
        if not files and len(some) > 1:
            yield from say(f"and {len(some) - 1} more", _BELOW)
        yield ""
    refusals = {code: len(some) for (what, code), some in groups.items() if what == REFUSED}
    refused = sum(refusals.values())
    why = ", ".join(f"{many} {code}" for code, many in refusals.items())
    yield from say(f"{len(measured)} measured, {refused} refused" + (f": {why}" if why else ""))
    if refused:
        yield from say("docs/refusals.md says what each refusal means")
    if "unknown-format" in refusals:
        yield from say("docs/log-formats.md lists the known formats; --pattern describes any other")
    if not files and refused > len(refusals):
        yield from say("--files shows every log that was refused")


def csv_lines(runs: Iterable[Measurement]) -> Iterator[str]:
    """A header, and a row for each run, with the fields of a Measurement."""
    names = [field.name for field in fields(Measurement)]
    yield from table_of([], names).splitlines()
    for run in runs:
        row = {name: _field(value) for name, value in asdict(run).items()}
        yield table_of([row], names).splitlines()[1]


def _groups(runs: Iterable[Measurement]) -> Mapping[tuple[str, str], list[tuple[Measurement, str]]]:
    """Warnings and refusals by their code, the most frequent first: runs, each with the reason."""
    groups: dict[tuple[str, str], list[tuple[Measurement, str]]] = defaultdict(list)
    for run in runs:
        for warning in run.warnings:
            code, _, text = warning.partition(": ")
            groups[WARNED, code.partition(" ")[0]].append((run, text))
        if run.status != "ok":
            groups[REFUSED, run.code].append((run, run.reason))
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


def _cells(run: Measurement, seldom: Iterable[str]) -> list[str]:
    """A run as a row, without its name."""
    return [
        f"{run.throughput:.2f}",
        run.unit or "",
        _span(run.first, run.last),
        "" if run.first_printed is None else f"{run.first_printed}..{run.last_printed}",
        "" if run.interval is None else str(run.interval),
        _span(*(run.widest or (None, None))),
        "" if run.global_batch is None else str(run.global_batch),
        *(_extra(name, run) for name in seldom),
        run.format or "",
    ]


def _printed(run: Measurement) -> str:
    """What a log prints of a run that was refused, for the end of its line."""
    parts = [run.format or ""]
    if run.first_printed is not None:
        parts.append(f"prints {run.first_printed}..{run.last_printed}")
    if run.interval is not None:
        parts.append(f"every {run.interval}")
    if run.widest:
        parts.append(f"widest window {_span(*run.widest)}")
    return f" ({', '.join(filter(None, parts))})" if any(parts) else ""


def _extra(name: str, run: Measurement) -> str:
    """What a run has for one of the further columns; mostly nothing."""
    if name == "to train":
        return "" if run.time_to_train is None else f"{run.time_to_train:.1f} s"
    return f"{run.evaluations}: {run.evaluated:.4g} s" if run.evaluations else ""


def _span(first: int | None, last: int | None) -> str:
    return "" if first is None else f"{first}:{last}"


def _field(value: object) -> object:
    """A value for measurements.csv: a pair with a colon, a mapping with semicolons."""
    if isinstance(value, tuple | list):
        return (":" if all(isinstance(part, int) for part in value) else "; ").join(map(str, value))
    if isinstance(value, dict):
        return "; ".join(f"{name}: {part}" for name, part in value.items())
    return value


def _medians(results: Iterable[RunResult], common: str) -> list[list[str]]:
    """The median and the spread of the runs in each folder that are of one configuration.

    They are in the order in which they were found. Refused runs do not count, and a copy counts
    once. A run of ours has a folder to itself: the one around it counts.
    """
    folders: dict[str, dict[_Setup, list[RunResult]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        if result.measured.status == "ok":
            path = PurePath(result.measured.log)
            is_own = result.record and len(path.parents) > 1
            folders[str(path.parents[1] if is_own else path.parent)][_setup(result)].append(result)
    rows = []
    for folder, setups in folders.items():
        for setup, some in setups.items():
            duplicates = DuplicateFinder()
            runs = [
                result.measured
                for result in some
                if not duplicates.reason(result.measured.log, None, result)
            ]
            speeds = [run.throughput or 0.0 for run in runs]
            facts = _distinguishing(setup, [*setups])
            rows.append(
                [
                    str(len(runs)),
                    f"{median(speeds):.2f}",
                    f"{min(speeds):.2f}..{max(speeds):.2f}",
                    runs[0].unit or "",
                    "" if runs[0].global_batch is None else str(runs[0].global_batch),
                    _inside(folder, common)
                    + (f": {facts}" if facts else "")
                    + (" (scattered)" if max(speeds) > _SCATTERED * min(speeds) else ""),
                ]
            )
    return rows


def _setup(result: RunResult) -> _Setup:
    facts = result.facts
    setup: dict[str, object] = {
        name: facts.get(name) for name in facts.sources() if name not in _OF_ONE_RUN
    }
    names = "unit", "format", "global_batch"
    return tuple(sorted((setup | {name: getattr(result.measured, name) for name in names}).items()))


def _distinguishing(setup: _Setup, setups: Iterable[_Setup]) -> str:
    """The first few facts that distinguish a configuration from the others in its folder."""
    order = ["format", *FACT_NAMES]
    facts = [fact for fact in setup if fact[0] not in ("global_batch", "unit")]
    facts.sort(key=lambda fact: order.index(fact[0]) if fact[0] in order else len(order))
    distinct, others = [], [other for other in setups if other != setup]
    for fact in facts:
        if any(fact not in other for other in others):
            distinct.append(fact)
            others = [other for other in others if fact in other]
    return ", ".join(f"{called(name)} {shown(value)}" for name, value in distinct)
