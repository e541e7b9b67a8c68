"""How values are printed for people; an absent value is a dash."""

import shlex
from collections.abc import Iterable
from math import floor, log10
from typing import Any

import pandas as pd

from reperf.text import count

ABSENT = "–"  # noqa: RUF001 - an en dash is what it is

Value = Any  # a number; None or NaN where there is none


def number(value: Value) -> str:
    """Two decimals and groups of three digits: "12,411.97"."""
    return ABSENT if pd.isna(value) else f"{value:,.2f}"


def in_four_digits(value: Value) -> str:
    """At least four digits, and no decimals beyond them: "12,412", "397.6", "9.554"."""
    if pd.isna(value):
        return ABSENT
    before = floor(log10(abs(value))) + 1 if value else 1
    return f"{value:,.{max(0, 4 - before)}f}"


def spread(value: Value, runs: int) -> str:
    """A number of the repeats' spread, which a single run has none of."""
    return in_four_digits(value) if runs > 1 else ABSENT


def plain_number(value: Value) -> str:
    """Two decimals, nothing else: "12411.97"."""
    return ABSENT if pd.isna(value) else f"{value:.2f}"


def published_speedup(cell: Any) -> str:  # noqa: ANN401 - pandas' named tuple
    """The speedup over one device that was published; in parentheses where its throughputs were."""
    if pd.notna(cell.speedup_published) or pd.isna(cell.speedup) or cell.baseline != "1n1g":
        return number(cell.speedup_published)
    return f"({number(cell.speedup)})"


def speedup_over(cell: Any) -> str:  # noqa: ANN401 - pandas' named tuple
    """The speedup of a published cell over the smallest one of its series: "3.56 over 1n8g"."""
    return ABSENT if pd.isna(cell.speedup) else f"{number(cell.speedup)} over {cell.baseline}"


def percent(value: Value) -> str:
    """A share as a percentage with one decimal: "97.5 %"."""
    return ABSENT if pd.isna(value) else f"{100 * value:.1f} %"


def difference(ratio: float, unit: str = " %") -> str:
    """How far a ratio is from 1: "−2.7 %", "0.0 %", "+0.3 %"."""  # noqa: RUF002 - a minus it is
    shown = f"{100 * (ratio - 1):+.1f}"
    return ("0.0" if float(shown) == 0 else shown.replace("-", "\N{MINUS SIGN}")) + unit


def waiting(share: Value) -> str:
    """The share of its time that a run waited for data."""
    return "not measured" if pd.isna(share) else percent(share)


def gibibytes(value: Value) -> str:
    """Bytes as GiB, and as MiB if that would be none: "15.6 GiB", "2 MiB"."""
    if pd.isna(value):
        return ABSENT
    return f"{value / 2**30:.1f} GiB" if value >= 0.05 * 2**30 else f"{value / 2**20:.0f} MiB"


def memory(value: Value, kind: str) -> str:
    """Bytes, and what they are of memory: "15.6 GiB allocated"."""
    return f"{gibibytes(value)} {kind}".rstrip()


def sharing(cell: Any) -> str:  # noqa: ANN401 - pandas' named tuple, or a row of published numbers
    """Which devices share which CPUs: "3 devices share 2 CPUs"; "" where each has its own."""
    cpus = getattr(cell, "shared_cpus", None)
    if cpus is None or pd.isna(cpus):
        return ""
    devices = count(int(cell.num_nodes) * int(cell.devices_per_node), "device")
    return f"{devices} share {count(int(cpus), 'CPU')}"


def batch_size(size: Value) -> str:
    """Samples per device; "largest" as long as no search has found the number."""
    return "largest" if pd.isna(size) else str(size)


def other_work(load: Any) -> str:  # noqa: ANN401 - a Load
    """What else a machine did beside a run."""
    shares = [(load.before, "before"), (load.during, "during")]
    parts = [f"{percent(share)} of the CPUs' time {when}" for share, when in shares]
    if load.gpu_processes is not None:
        parts.append(f"processes on its GPUs before: {load.gpu_processes}")
    return f"{', '.join(parts)}; load average {load.average:.2f} before"


def trials(search: Any) -> str:  # noqa: ANN401 - a LargestBatch
    """How a largest batch was found: each trial in its order."""
    shown = [
        f"{trial.batch_size} {'trained' if trial.status == 'ok' else trial.status}"
        + (f" with {gibibytes(max(trial.peak_memory_bytes))}" if trial.peak_memory_bytes else "")
        for trial in search.trials
    ]
    of = "" if search.memory_bytes is None else f" of {gibibytes(search.memory_bytes)}"
    result = search.batch_size if search.status == "ok" else f"none, {search.reason}"
    return f"{result}; multiples of {search.multiple} were tried in memory{of}: {', '.join(shown)}"


def day_and_time(iso: str) -> str:
    """An ISO 8601 time without its fraction of a second: "2026-11-21 08:15:02 UTC"."""
    return f"{iso[:10]} {iso[11:19]} UTC"


def shell(words: Iterable[str]) -> str:
    """A command as you would type it."""
    return shlex.join(words)


def as_printed(table: pd.DataFrame, group: str = "") -> pd.DataFrame:
    """A published table as text: each column with the decimals that its numbers were printed with.

    Args:
        group: separates groups of three digits.
    """
    return table.apply(_column_as_printed, group=group)


def _column_as_printed(column: pd.Series, group: str) -> pd.Series:
    if not pd.api.types.is_float_dtype(column):
        return column.astype(str)
    decimals = max(len(f"{value:.10g}".partition(".")[2]) for value in column.dropna())
    return column.map(lambda value: ABSENT if pd.isna(value) else f"{value:{group}.{decimals}f}")
