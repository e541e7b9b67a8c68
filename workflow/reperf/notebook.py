"""The functions for notebooks: logs and tables as pandas' DataFrames, and a suite's figures.

They are names of the package itself: `import reperf`, then `reperf.measure("logs")`.
"""

import os
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import pandas as pd

from reperf.config import topology_shape
from reperf.errors import ReperfError
from reperf.measuring.found_logs import MeasureRequest, measure_paths
from reperf.measuring.measure import Measurement, Method
from reperf.measuring.statistics import ranked
from reperf.tables import CELL, read_measurements, read_summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["measure", "plot", "rank", "read_measurements", "read_summary"]

Paths = Path | str | Iterable[Path | str]
Kind = Literal["throughput", "speedup", "efficiency", "energy", "utilisation"]

_FACTS = ("global_batch", "batch_size", "topology", "accumulation", "epoch_samples")
# The first that fits: a count of samples may be a part of one.
_TYPES = {float: "float64", int: "Int64"}


def measure(
    paths: Paths,
    window: tuple[int, int] | Literal["all"] | None = None,
    *,
    unit: str | None = None,
    log_format: str | None = None,
    pattern: str | None = None,
    processes: int | None = None,
    **facts: int | str,
) -> pd.DataFrame:
    """Measure every training run in logs.

    Args:
        paths: a log, a folder or an archive, or several of them.
        window: the two iterations between which to measure, as the log numbers them; "all": the
            widest window that the rule allows; None: iterations 20 to 120, or the widest window
            where the log has no such one, with a warning in its row.
        unit: what to count, such as "tokens"; None: samples.
        log_format: a name that docs/log-formats.md lists; None: found from the content.
        pattern: a regular expression of an iteration's line, instead of a format.
        processes: how many logs to measure at once; None: one for each usable CPU.
        facts: what the logs leave out: global_batch, batch_size, topology (such as "2n8g"),
            accumulation, epoch_samples.

    Returns:
        One row a run. `status` is "ok" or "refused"; a refused run has a `code` and a `reason`, and
        no `throughput` (in `unit`). Whole numbers are Int64, absent values <NA> or NaN.

    Raises:
        ReperfError: a path is missing, or a fact has an unknown name.

    Examples:
        >>> import reperf
        >>> runs = reperf.measure("tests/data/logs/oneflow_resnet50_2n8g_b128_fp32.log")
        >>> runs[["status", "first", "last", "unit"]].values.tolist()
        [['ok', 20, 120, 'images/s']]
    """
    if unknown := [name for name in facts if name not in _FACTS]:
        raise ReperfError(f"measure: {unknown[0]}: no such fact; allowed: {', '.join(_FACTS)}")
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    files = [Path(path) for path in given]
    for path in files:
        if not path.exists():
            raise ReperfError(f"{path}: no such file or folder")
    known: dict[Any, Any] = dict(facts)
    if "topology" in known:
        known["nodes"], known["devices_per_node"] = topology_shape(str(known.pop("topology")))
    request = MeasureRequest(
        method=Method(
            unit=unit,
            ends=None if window == "all" else window,
            widest=window == "all",
            otherwise_widest=True,
        ),
        log_format=log_format,
        pattern=pattern,
        facts=[("the caller", list(known.items()))],
        include_unrecognised=True,
    )
    results = measure_paths(files, request, processes or len(os.sched_getaffinity(0)))
    columns = [field.name for field in fields(Measurement)]
    return pd.DataFrame([vars(result.measured) for result in results], columns=columns).astype(
        {field.name: _type_of(field.type) for field in fields(Measurement)}
    )


def rank(measurements: pd.DataFrame | Path | str) -> pd.DataFrame:
    """Rank the cells of each suite and topology by the median throughput of their repeats.

    Args:
        measurements: measurements.csv, or what `read_measurements` made of it.

    Returns:
        One row a cell, the fastest of each suite and topology first: the columns that name the
        cell, `rank`, `n`, `median` (in `unit`), `ratio` to the fastest cell's median, `verdict`
        ("fastest", "slower" or "not resolvable") and `p`: of the exact two-sided Mann-Whitney U
        test against the fastest cell, corrected by Holm's method for the number of rivals.

    Examples:
        >>> import reperf
        >>> ranking = reperf.rank("results/measurements.csv")  # doctest: +SKIP
    """
    table = _table(measurements, read_measurements)
    good = table[table["status"] == "ok"]
    rows = []
    for (_, _, unit), group in good.groupby(["suite", "topology", "unit"], sort=False):
        cells = [
            (dict(zip(CELL, key, strict=True)), list(cell["throughput"]))
            for key, cell in group.groupby(list(CELL), sort=False, dropna=False)
        ]
        for number, place in enumerate(ranked([throughputs for _, throughputs in cells]), 1):
            cell, throughputs = cells[place.cell]
            rows.append(
                cell
                | {"rank": number, "n": len(throughputs), "median": place.median, "unit": unit}
                | {"ratio": place.ratio, "verdict": place.verdict, "p": place.p}
            )
    columns = [*CELL, "rank", "n", "median", "unit", "ratio", "verdict", "p"]
    return pd.DataFrame(rows, columns=columns).astype({"p": "float64"})


def plot(
    summary: pd.DataFrame | Path | str, kind: Kind = "throughput", suite: str | None = None
) -> "Figure":
    """Draw a suite as its report does.

    Args:
        summary: summary.csv, or what `read_summary` made of it.
        kind: "throughput", "speedup", "efficiency", "energy" or "utilisation".
        suite: which suite of the table; None: the only one.

    Returns:
        A figure of matplotlib, which a notebook shows.

    Raises:
        ReperfError: the table has no such suite, or several and none is named; or there is no such
            kind of figure.

    Examples:
        >>> import reperf
        >>> reperf.plot("results/summary.csv", suite="resnet50-fp32")  # doctest: +SKIP
    """
    # Measuring and ranking need no matplotlib.
    from reperf.drawing import figures  # noqa: PLC0415

    if kind not in get_args(Kind):
        raise ReperfError(f"plot: kind: got {kind!r}; allowed: {', '.join(get_args(Kind))}")
    cells = _table(summary, read_summary)
    suites = list(dict.fromkeys(cells["suite"]))
    if suite is None and len(suites) == 1:
        suite = suites[0]
    if suite not in suites:
        raise ReperfError(f"plot: suite: got {suite!r}; allowed: {', '.join(suites) or 'none'}")
    return figures.draw_kind(kind, cells[cells["suite"] == suite].reset_index(drop=True))


def _type_of(annotation: Any) -> str:  # noqa: ANN401 - as dataclasses give it
    """The type of a column that holds a field of a measurement."""
    kinds = {annotation, *get_args(annotation)} - {type(None)}
    numbers = [name for kind, name in _TYPES.items() if kind in kinds]
    whole = kinds <= {annotation, int, float}
    return numbers[0] if numbers and whole else "object"


def _table(table: pd.DataFrame | Path | str, read: Any) -> pd.DataFrame:  # noqa: ANN401
    return table if isinstance(table, pd.DataFrame) else read(table)
