"""What to know before reading a cell's number, in a few words each: from its row alone.

summary.csv, the page, the figures and the tables for papers take their marks from here.
"""

import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from reperf.measuring.statistics import WIDE
from reperf.number_format import percent
from reperf.records.run_record import BESIDE, UNUSABLE

BOUND_BY_LOADER = 0.05
"""The share of its time beyond which a cell that waited for data was bound by its loader."""
THROTTLED = 0.01  # the share of a run's time beyond which it ran throttled
CLOCKS = 1.05
"""The greatest clock of a cell's runs over the least beyond which they are said to differ."""

BUSY, WAITED = "machine busy", "bound by loader"
NOT_USABLE = "not usable"  # how the mark of such a cell begins
STRAY, APART = "starts elsewhere", "one after the other"
SLOW_NODE = "on slow "  # how the mark begins of a cell that a slow node ran a part of
OF_RUNS = (STRAY, SLOW_NODE, APART)
"""How marks begin that follow from a cell's runs, and not from the rest of its row."""
NOTES = ("on several hosts", "unconfirmed", "clock was set", APART)
"""How marks begin that say what a number is of, and not that it is doubtful."""
OF_LOGS = {
    "gap": "a gap in the window",
    "not-finite": "loss not finite",
    "implied-length": "the batch as given",
    "clock-set": NOTES[2],
    "not-one-thing": "not one thing",
    "trained-again": "trained again",
}
"""The warnings of runs, see reperf.logs.checks -> the marks of their cells."""
_GAP = re.compile(r"(?:^|, )gap (\d{1,9}\.\d)%(?=, |$)")


def marks_of(row: Mapping[str, Any]) -> list[str]:
    """The marks of a row of summary.csv, the worst first; few where nothing was measured.

    Those that follow from the cell's runs are in its column `marks` already.
    """
    of_runs = [mark for mark in row["marks"].split("; ") if mark.startswith(OF_RUNS)]
    if pd.isna(row["throughput_median"]):
        return [mark for mark in of_runs if mark == STRAY]
    load, throttled = row["load"], row["throttled"]
    unusable = _above(load, UNUSABLE)
    beside = _above(load, BESIDE) or _above(row["gpu_processes"], 0)
    slow, fast = row["mhz_min"], row["mhz_max"]
    hosts = len(str(row["hosts"] or "").split())
    marks = {
        f"{NOT_USABLE}: {percent(load)} other work": unusable,
        BUSY: beside and not unusable,
        f"throttled {percent(throttled)} of its time": _above(throttled, THROTTLED),
        **dict.fromkeys(_of_logs(row["warnings"]), True),
        f"clocks differ: {slow:.0f} to {fast:.0f} MHz": pd.notna(slow) and fast > CLOCKS * slow,
        "scattered": is_scattered(row),
        WAITED: _above(row["waited"], BOUND_BY_LOADER),
        f"{NOTES[0]}: {hosts} hosts": pd.notna(row["num_nodes"]) and hosts > row["num_nodes"],
        f"{NOTES[1]}: {row['unconfirmed']} as the configuration says": bool(row["unconfirmed"]),
    }
    return of_runs + [mark for mark, holds in marks.items() if holds]


def _of_logs(warnings: str) -> list[str]:
    """The marks that follow from warnings; of several gaps, the one that changes the most."""
    codes = [warning.partition(" ")[0] for warning in warnings.split(", ")]
    marks = [mark for code, mark in OF_LOGS.items() if code in codes]
    if shares := _GAP.findall(warnings):
        marks[0] += f": one interval moves it by {max(map(float, shares)):g} %"
    return marks


def is_scattered(row: Mapping[str, Any]) -> bool:
    """Whether a cell's repeats, or the baseline's, scatter so that its speedup says nothing."""
    low, high = row["speedup_low"], row["speedup_high"]
    return bool(pd.notna(low) and high > WIDE * low)


def is_doubtful(mark: str) -> bool:
    """Whether a mark says that a number is doubtful, and not what it is of."""
    return not mark.startswith(NOTES)


def _above(value: Any, limit: float) -> bool:  # noqa: ANN401 - a number, or one of pandas' nothings
    return bool(pd.notna(value) and value > limit)
