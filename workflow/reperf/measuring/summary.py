"""From runs to cells: one row per cell, each with its numbers or the reason for none."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import nan
from typing import Any

import pandas as pd

from reperf.config import Cell
from reperf.errors import ReperfError
from reperf.measuring import SUMMED
from reperf.measuring.counts import per_second, unit_of
from reperf.measuring.marks import APART, STRAY, marks_of
from reperf.measuring.statistics import (
    efficiency,
    initial_loss_outliers,
    no_turns,
    speedup,
    speedup_range,
    spread,
)
from reperf.systems.workloads import load_workloads, read_shape
from reperf.tables import CELL, SETTING, SUMMARY

_BATCH = "batch_size_per_device"
PLACE = ("topology", "num_nodes", "devices_per_node")
"""CELL columns in which the cells of one speedup series may differ."""


def summarise(
    measurements: pd.DataFrame,
    cells: Iterable[Cell] = (),
    *,
    unit: str | None = None,
    baseline: str | None = None,
) -> list[dict[str, Any]]:
    """The rows of summary.csv.

    Args:
        measurements: as read_measurements gives them.
        cells: what the configuration asks to run, in the table's order; those that cannot run
            have no measurements. All other measured cells follow them, except logs whose
            topology is unknown.
        unit: what cells without measurements would have counted, such as images.
        baseline: the topology that speedup is against; None: the smallest of each series.
    """
    placed = measurements[measurements["topology"] != ""]
    groups = {_key(key): runs for key, runs in placed.groupby(list(CELL), sort=False, dropna=False)}
    rows: list[dict[str, Any]] = []
    runs_of: list[pd.DataFrame] = []  # of each row
    for cell in cells:
        key = _key_in(groups, _identity(cell))
        runs = measurements[:0] if cell.unsupported else groups.pop(key, None)
        if runs is None:
            raise ReperfError(f"measurements.csv: no run of the cell {'/'.join(filter(None, key))}")
        runs_of.append(runs)
        rows.append(_unsupported(cell, unit) if cell.unsupported else _measured(runs))
    runs_of += groups.values()
    rows += map(_measured, groups.values())
    _add_speedup(rows, baseline)
    strays, later = strays_of(measurements).index, _later(rows, runs_of)
    for at, (row, runs) in enumerate(zip(rows, runs_of, strict=True)):
        of_runs = {STRAY: runs.index.isin(strays).any(), APART: at in later}
        row["marks"] = "; ".join(mark for mark, holds in of_runs.items() if holds)
        row["marks"] = "; ".join(marks_of(row))
    return rows


def _later(rows: Sequence[dict[str, Any]], runs_of: Sequence[pd.DataFrame]) -> set[int]:
    """Which cells ran wholly after a cell that they are compared with."""
    beside = defaultdict(list)
    for at, row in enumerate(rows):
        if row["n"]:
            beside[_key(row[name] for name in (*PLACE, "shared_cpus", "unit"))].append(at)
    later = set()
    for some in beside.values():
        medians = [rows[at]["throughput_median"] for at in some]
        is_rate = rows[some[0]]["unit"].endswith("/s")
        speeds = medians if is_rate else [1 / median for median in medians]
        good = (runs_of[at].query("status == 'ok'") for at in some)
        starts = [sorted(filter(None, runs["date"])) for runs in good]
        later |= {some[after] for _, after in no_turns(speeds, starts)}
    return later


def strays_of(measurements: pd.DataFrame) -> pd.Series:
    """Which runs start from another loss than most others; see initial_loss_outliers.

    Each system crops real images at random in its own way: runs that read some are left out.
    """
    images = [name for name, known in load_workloads().items() if known.data == "images"]
    cropped = measurements["workload"].isin(images) & (measurements["input"] != "synthetic")
    return initial_loss_outliers(measurements[~cropped])


def _key(values: Iterable[object]) -> tuple[str, ...]:
    return tuple("" if value is None or pd.isna(value) else str(value) for value in values)


def _key_in(groups: Iterable[tuple[str, ...]], identity: dict[str, Any]) -> tuple[str, ...]:
    """The key of a planned cell; where its batch size is still open, that of its measured runs."""
    if identity[_BATCH] is not None:
        return _key(identity.values())
    place = CELL.index(_BATCH)
    asked = _key(identity.values())
    fits = (key for key in groups if (*key[:place], "", *key[place + 1 :]) == asked)
    return next(fits, asked)


def _identity(cell: Cell) -> dict[str, Any]:
    return cell.runs[0].identity | {"source": ""}


def _unsupported(cell: Cell, unit: str | None) -> dict[str, Any]:
    counted = per_second(unit) if unit else unit_of(cell.runs[0].workload)
    why = {"status": "unsupported", "reason": cell.unsupported}
    first = cell.runs[0]
    asked = _identity(cell) | first.setting | {"shared_cpus": first.shared_cpus}
    return dict.fromkeys(SUMMARY) | asked | why | {"n": 0, "unit": counted}


def _measured(runs: pd.DataFrame) -> dict[str, Any]:
    good = runs[runs["status"] == "ok"]
    first = (good if len(good) else runs).iloc[0]
    status, reason = _verdict(runs)
    row = dict.fromkeys(SUMMARY) | {name: first[name] for name in (*CELL, *SETTING, "unit")}
    row |= {"status": status, "reason": reason, "n": len(good)}
    row |= _origin(runs, good) | {
        # The load before the run, where it could not be sampled during the run.
        "load": runs["load_during"].fillna(runs["load_before"]).max(),
        "gpu_processes": runs["gpu_processes"].max(),
        "shared_cpus": runs["shared_cpus"].max(),
        "unconfirmed": _all_words(runs["unconfirmed"]),
        "warnings": _all_words(good["warnings"]),
        "estimated_memory": runs["estimated_memory"].max(),
        "throttled": good["throttled"].max(),
        "mhz_min": good["mhz"].min(),
        "mhz_max": good["mhz"].max(),
    }
    if len(good):
        row |= spread([float(value) for value in good["throughput"]])
        row |= {
            "method": first["method"],
            "waited": _median(good["waited"]),
            "also_median": _median(good["also_throughput"]),
            "also_unit": first["also_unit"],
            **_rates(good, row),
        }
    return row


def _origin(runs: pd.DataFrame, good: pd.DataFrame) -> dict[str, Any]:
    """Where and when a cell was measured, and its key if its good runs have one and the same."""
    hosts, commits = (
        " ".join(dict.fromkeys(" ".join(runs[name]).split())) for name in ("hosts", "commit")
    )
    keys = set((good if len(good) else runs)["key"])
    return {
        "hosts": hosts,
        "commit": commits,
        "date": min(filter(None, runs["date"]), default=""),
        "key": keys.pop() if len(keys) == 1 else "",
    }


def _rates(good: pd.DataFrame, row: dict[str, Any]) -> dict[str, Any]:
    """What a cell's measured runs come to for one device, one step and one sample."""
    devices = int(row["num_nodes"]) * int(row["devices_per_node"])
    iterations = (good["last"] - good["first"]).astype(float)
    samples = iterations * good["global_batch"].astype(float)
    if (together := good["method"] == SUMMED).any():
        # `first` and `last` are rank 0's alone; what is counted in another unit says no samples.
        known = good["samples"].astype(float) if row["unit"] == unit_of(row["workload"]) else nan
        samples = samples.mask(together, known)
        each = samples / devices / good["global_batch"].astype(float)
        iterations = iterations.mask(together, each)
    of_sample = load_workloads()[row["workload"]].flops_at(read_shape(row["shape"]))
    rate = samples / good["seconds"]
    of_samples = good["also_unit"] == unit_of(row["workload"])
    rate = good["also_throughput"].astype(float).where(of_samples, rate)
    if row["precision"] == "fp8":
        of_sample = None  # some of it is computed in float8, and some is not
    computed = rate * ((of_sample or nan) / devices)
    # A device that shares CPUs has no rate of its own.
    alone = not _shares(row)
    return {
        "per_device": row["throughput_median"] / devices if alone else None,
        "step_ms": _median(1000 * good["seconds"] / iterations),
        "flop_utilisation": _median(computed / good["matrix_rate"]) if alone else None,
        "data_sheet_utilisation": _median(computed / good["data_sheet_rate"]) if alone else None,
        "peak_memory": good["peak_memory"].max(),
        "peak_memory_is": " ".join(dict.fromkeys(filter(None, good["peak_memory_is"]))),
        "joules_per_sample": _median(good["joules"] / samples),
        "stage_memory": _greatest_of_stages(good["stage_memory"]),
        "epoch_seconds": _epoch_seconds(good, row),
    }


def _all_words(lists: pd.Series) -> str:
    """All that any of some lists names, each once."""
    return ", ".join(dict.fromkeys(word for text in lists if text for word in text.split(", ")))


def _greatest_of_stages(texts: pd.Series) -> str:
    """The most memory of each stage of all runs, bytes with spaces between them."""
    stages = zip(*(map(int, text.split()) for text in texts if text), strict=True)
    return " ".join(str(max(taken)) for taken in stages)


def _epoch_seconds(good: pd.DataFrame, row: dict[str, Any]) -> float | None:
    """How long an epoch of whole global batches takes; None where its samples are unknown."""
    known = load_workloads().get(row["workload"])
    batches = set(good["global_batch"].dropna())
    if known is None or known.epoch is None or len(batches) != 1:
        return None
    if row["unit"] != per_second(known.units[0]):
        return None
    (batch,) = map(int, batches)
    return known.epoch // batch * batch / row["throughput_median"]


def _median(values: pd.Series) -> float | None:
    known = values.dropna()  # of none at all, numpy warns
    return float(known.median()) if len(known) else None


def _verdict(runs: pd.DataFrame) -> tuple[str, str]:
    """A cell's status and reason: what most of its bad runs say, or the first of a tie."""
    bad = runs[runs["status"] != "ok"]
    if not len(bad):
        return "ok", ""
    status, count = Counter(bad["status"]).most_common(1)[0]
    reason = bad.loc[bad["status"] == status, "reason"].iloc[0]
    if len(bad) < len(runs):
        return "partial", f"{len(bad)} of {len(runs)} repeats not measured; {status}: {reason}"
    others = "" if count == len(runs) else f"{count} of {len(runs)} repeats: "
    return status, others + reason


def _add_speedup(rows: Iterable[dict[str, Any]], baseline: str | None) -> None:
    """Add speedup and efficiency, and the baseline that they are against.

    The baseline is a cell of the same series. If it gave no number, there is no speedup: no larger
    topology takes its place. Nor is there one where devices share CPUs: more devices are not more
    of anything there.
    """
    series = defaultdict(list)
    for row in rows:
        series[_key(row[column] for column in CELL if column not in PLACE)].append(row)
    for cells in series.values():
        against = baseline or min(cells, key=_size)["topology"]
        base = next((row for row in cells if row["topology"] == against), None)
        if base is not None and base["throughput_median"] is not None and not _shares(base):
            for row in cells:
                row.update({} if _shares(row) else _speedup_over(base, row))


def _speedup_over(base: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    median = row["throughput_median"]
    if median is None:
        return {}
    ideal = Fraction(_size(row)[0], _size(base)[0])
    low, high = None, None
    if row is not base and row["n"] > 1 and base["n"] > 1:
        ends = ((one["throughput_min"], one["throughput_max"]) for one in (row, base))
        low, high = speedup_range(*ends)
    return {
        "speedup_low": low,
        "speedup_high": high,
        "speedup": speedup(median, base["throughput_median"]),
        "efficiency": efficiency(median, base["throughput_median"], ideal),
        "baseline": base["topology"],
    }


def _shares(row: dict[str, Any]) -> bool:
    """Whether a cell's devices had no CPUs of their own."""
    return bool(pd.notna(row["shared_cpus"]))


def _size(row: dict[str, Any]) -> tuple[int, int]:
    """How large a cell's topology is: by devices, then by nodes."""
    nodes, devices = int(row["num_nodes"]), int(row["devices_per_node"])
    return nodes * devices, nodes
