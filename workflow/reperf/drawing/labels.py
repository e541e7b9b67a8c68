"""What people call a suite and its series, from the rows of its summary alone."""

import pandas as pd

from reperf.systems import load_systems, load_workloads


def title_of(cells: pd.DataFrame) -> str:
    """A suite's title, such as "ResNet-50 v1.5, FP32, batch size 128".

    Args:
        cells: the suite's rows of summary.csv; or, if it has none, of measurements.csv.
    """
    first = cells.iloc[0]
    known = load_workloads().get(first["workload"])
    workload = known.title if known else first["workload"]
    sizes = sorted(cells["batch_size_per_device"].dropna().unique())
    if not sizes and cells["source"].all():  # logs of others that do not say it
        batch = "batch size unknown"
    elif not sizes:  # of none of them the largest is known
        batch = "largest batch"
    elif len(sizes) == 1:
        batch = f"batch size {sizes[0]}"
    else:
        batch = f"batch sizes {sizes[0]} to {sizes[-1]}"
    return f"{workload}, {first['precision'].upper()}, {batch}"


def unit_of(cells: pd.DataFrame) -> str:
    """The unit of a suite's throughput; empty if no run got far enough to say it."""
    return next(filter(None, cells["unit"]), "")


def series_of(cells: pd.DataFrame) -> pd.Series:
    """Each cell's series: system, variant, batch size if these differ, and the source of logs.

    Args:
        cells: the suite's rows of summary.csv.
    """
    sizes_differ = cells["batch_size_per_device"].nunique() > 1
    names = []
    for cell in cells.itertuples():
        known = sizes_differ and pd.notna(cell.batch_size_per_device)
        batch = f"batch {cell.batch_size_per_device}" if known else ""
        source = f"from {cell.source}" if cell.source else ""
        parts = system_title(cell.system), cell.variant, batch, source
        names.append(", ".join(filter(None, parts)))
    return pd.Series(names, index=cells.index, dtype=str)


def system_title(system: str) -> str:
    """A system's title; its id, if it is known only from a log."""
    known = load_systems().get(system)
    return known.title if known else system
