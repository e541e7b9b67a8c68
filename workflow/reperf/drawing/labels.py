"""What people call a suite and its series, from the rows of its summary alone."""

import re

import pandas as pd

from reperf.number_format import sharing
from reperf.systems import load_systems
from reperf.systems.workloads import load_workloads, read_shape

MOST_HOSTS = 4  # how many hosts a figure names


def title_of(cells: pd.DataFrame) -> str:
    """A suite's title, such as "ResNet-50 v1.5 (64 px), FP32, batch size 128, on CPUs".

    It names the shape where that is not the workload's own, synthetic input, CPUs,
    and which devices share them.

    Args:
        cells: the suite's rows of summary.csv; or, if it has none, of measurements.csv.
    """
    first = cells.iloc[0]
    known = load_workloads().get(first["workload"])
    workload = known.title_at(read_shape(first["shape"])) if known else first["workload"]
    taken = cells[cells["status"] != "refused"]
    sizes = sorted((cells if taken.empty else taken)["batch_size_per_device"].dropna().unique())
    if not sizes and cells["source"].all():  # logs of others that do not say it
        batch = "batch size unknown"
    elif not sizes:  # of none of them the largest is known
        batch = "largest batch"
    elif len(sizes) == 1:
        batch = f"batch size {sizes[0]}"
    else:
        batch = f"batch sizes {sizes[0]} to {sizes[-1]}"
    parts = [workload, first["precision"].upper(), batch]
    if first["input"] == "synthetic":
        parts.append("synthetic")
    if set(cells["device"]) & {"cpu"}:
        shared = dict.fromkeys(filter(None, map(sharing, cells.itertuples())))
        parts.append(f"on CPUs ({'; '.join(shared)})" if shared else "on CPUs")
    return ", ".join(parts)


def repeats_of(cells: pd.DataFrame) -> str:
    """How many repeats the medians of cells are of: "n = 3"; empty if nothing was measured."""
    counts = sorted(set(cells.loc[cells["n"] > 0, "n"]))
    return f"n = {' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))}" if counts else ""


def place_of(cells: pd.DataFrame) -> str:
    """Where and when a suite was measured: models of devices, hosts, the first run's day.

    Returns:
        What of them is known; "" if nothing is.
    """
    models = list(dict.fromkeys(filter(None, map(_model, cells["key"]))))
    hosts = list(dict.fromkeys(" ".join(cells["hosts"]).split()))
    if len(hosts) > MOST_HOSTS:
        hosts = [*hosts[: MOST_HOSTS - 1], f"{len(hosts) - MOST_HOSTS + 1} more"]
    day = min(filter(None, cells["date"]), default="")[:10]
    return " · ".join(filter(None, (", ".join(models), ", ".join(hosts), day)))


def _model(key: str) -> str:
    """The model of the device that a cell's key names."""
    named = re.search(r"\bdevice=\w+, ([^;]*)", key)
    return named[1] if named else ""


def unit_of(cells: pd.DataFrame) -> str:
    """The unit of a suite's throughput; empty if no run got far enough to say it."""
    return next(filter(None, cells["unit"]), "")


def series_of(cells: pd.DataFrame) -> pd.Series:
    """Each cell's series: system, variant, parallelism, servers, batch size, source of logs."""
    sizes_differ = cells["batch_size_per_device"].nunique() > 1
    names = []
    for cell in cells.itertuples():
        known = sizes_differ and pd.notna(cell.batch_size_per_device)
        batch = f"batch {cell.batch_size_per_device}" if known else ""
        source = f"from {cell.source}" if cell.source else ""
        parts = system_title(cell.system), cell.variant, cell.parallel, cell.servers, batch, source
        names.append(", ".join(filter(None, parts)))
    return pd.Series(names, index=cells.index, dtype=str)


def system_title(system: str) -> str:
    """A system's title; its id, if it is known only from a log."""
    known = load_systems().get(system)
    return known.title if known else system
