"""The tables of the published reports, made from their facts."""

from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache

import pandas as pd
from pydantic import ConfigDict

from reperf.errors import ReperfError
from reperf.published.definitions import Definitions, Heading, Series, Table, load_definitions
from reperf.published.numbers import SHAPE, TABLES, published_numbers, published_repeats
from reperf.systems import load_workloads, read_shape


class PublishedTable(Heading):
    """One table of a published report.

    Attributes:
        units: what the table holds, metric -> unit, in the order shown.
        cells: one row per system and topology: series (the label to show), system, variant, model,
            batch_size_per_device, topology, num_nodes, devices_per_node, num_devices, source_doc,
            and a column for each metric of `units`. For throughput also throughput_min,
            throughput_max and n, if the repeats were published; speedup, computed from the printed
            throughputs, over the fewest devices of the series, and baseline, the topology that has
            so many, both empty where only nodes are counted; and speedup_published.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    units: dict[str, str]
    cells: pd.DataFrame

    @property
    def unit(self) -> str | None:
        """The unit of throughput; None if the table holds something else."""
        return self.units.get("throughput")

    @property
    def has_speedup(self) -> bool:
        """Whether there are speedups, printed or computed, so that all figures can be drawn."""
        speedups = ["speedup", "speedup_published"]
        return self.unit is not None and bool(self.cells[speedups].notna().any(axis=None))

    @property
    def epoch(self) -> str | None:
        """Which of its metrics is the time of an epoch: of several epochs the last, warmed up.

        None: it holds no epochs, of which there would be a figure.
        """
        return max((name for name in self.units if name.startswith("epoch_")), default=None)

    def epochs(self) -> pd.DataFrame:
        """The cells of a table of epochs as figures take them.

        Returns:
            Its cells with epoch_seconds and stage_memory, the bytes of the device that took most,
            which nobody printed by stage, as text.
        """
        assert self.epoch
        taken = self.cells["gpu_memory"].map(lambda mebibytes: f"{mebibytes * 2**20:.0f}")
        seconds = self.cells[self.epoch]
        return self.cells.assign(epoch_seconds=seconds, stage_memory=taken, status="not printed")

    def wide(self) -> pd.DataFrame:
        """The table as its report shows it.

        Returns:
            Of throughput, one row per topology: nodes, devices (unless CPU nodes are counted), and
            one column per series, with its speedup beside it if the report prints one. Of something
            else, one row per series and one column per metric.
        """
        if self.unit is None:
            names = {
                metric: metric.replace("_", " ").replace("gpu", "GPU") for metric in self.units
            }
            titles = {metric: f"{names[metric]} ({unit})" for metric, unit in self.units.items()}
            return self.cells[["series", *titles]].rename(columns=titles)
        rows = {"num_nodes": "nodes", "num_devices": "devices"}
        if self.cells["num_devices"].isna().all():
            del rows["num_devices"]
        wide = self.cells.pivot(index=list(rows), columns="series")
        shown = {}
        for series in self.cells["series"].unique():
            shown[series] = wide["throughput", series]
            printed = wide["speedup_published", series]
            if printed.notna().any():
                shown[f"{series}: speedup"] = printed
        return pd.DataFrame(shown).reset_index().rename(columns=rows)


@cache
def load_tables() -> tuple[PublishedTable, ...]:
    """Every table of data/published/tables.yaml, in its order."""
    definitions = load_definitions()
    return tuple(build_table(table, definitions) for table in definitions.tables)


def published_for(workload: str, precision: str, batch_size: int) -> pd.DataFrame:
    """The published cells of the same workload, precision and batch size per device.

    They trained on real data at the workload's usual shape, and each names its unit: compare only
    such suites with them. Cells whose document gives no batch size are left out. On the reports'
    GPUs `amp` is fp16.

    Returns:
        The rows of `PublishedTable.cells` with report, table, workload, precision and unit; no cell
        appears twice.
    """
    cells = pd.concat(
        table.cells.assign(
            report=table.report,
            table=table.id,
            workload=table.workload,
            precision=table.precision,
            unit=table.unit,
        )
        for table in load_tables()
        if table.unit
    )
    same = (
        (cells["workload"] == workload)
        & (cells["precision"] == _as_published(precision))
        & (cells["batch_size_per_device"] == batch_size)
    )
    # One table's largest batch size may be another's usual one: it is still one cell.
    found = cells[same].drop_duplicates(["source_doc", "system", "variant", "topology"])
    return found.reset_index(drop=True)


def published_without_size(workload: str, precision: str) -> tuple[PublishedTable, ...]:
    """The tables of throughput of a workload whose documents name no batch size."""
    return tuple(
        table
        for table in load_tables()
        if table.unit
        and table.workload == workload
        and table.precision == _as_published(precision)
        and table.cells["batch_size_per_device"].isna().all()
    )


def _as_published(precision: str) -> str:
    return "amp" if precision == "fp16" else precision


def epochs_beside(cells: pd.DataFrame) -> pd.DataFrame:
    """How long epochs of a suite's training took others on its topologies, with how much memory.

    Args:
        cells: the suite's rows of summary.csv.

    Returns:
        The rows of `PublishedTable.epochs` with the table's `report`; none if the suite trains at
        another shape than the workload's usual one. A document that gives no batch size fits all.
    """
    found = pd.concat(
        table.epochs().assign(report=table.report, precision=table.precision)
        for table in load_tables()
        if table.epoch
    )
    suite, sizes = cells.iloc[0], found["batch_size_per_device"]
    known = load_workloads().get(suite["workload"])
    usual = known is not None and read_shape(suite["shape"]) == known.default_shape
    same = (
        (found["model"] == suite["workload"])
        & (found["precision"] == suite["precision"])
        & (sizes.isna() | sizes.isin(cells["batch_size_per_device"].dropna()))
        & found["variant"].str.endswith(
            "synthetic" if suite["input"] == "synthetic" else "real data"
        )
        & found["topology"].isin(cells["topology"])
    )
    return found[same & usual].reset_index(drop=True)


def speedup(throughput: Decimal, baseline: Decimal) -> Decimal:
    """How many times faster than a baseline: rounded half to even, once, to two decimals."""
    return (throughput / baseline).quantize(Decimal("0.01"), ROUND_HALF_EVEN)


def build_table(table: Table, definitions: Definitions) -> PublishedTable:
    """Make a table from the published numbers.

    Raises:
        ReperfError: a series that no published number belongs to.
    """
    numbers = published_numbers()
    # A document may print one number in two of its tables; it is one fact.
    rows = numbers[
        (numbers["source_doc"] == table.source)
        & numbers["model"].isin(table.models)
        & (numbers["precision"] == table.precision)
    ].drop_duplicates()
    cells = [
        {"series": _label(series, table, definitions)} | cell
        for series in table.series
        for cell in _cells(series, table, rows, definitions)
    ]
    return PublishedTable(
        **table.model_dump(exclude={"models", "variant", "series"}),
        units=rows.drop_duplicates("metric").set_index("metric")["unit"].to_dict(),
        cells=_typed(pd.DataFrame(cells)),
    )


def _label(series: Series, table: Table, definitions: Definitions) -> str:
    if series.label:
        return series.label
    variant = [definitions.variants[series.variant].label] if series.variant else []
    batch = [f"batch {series.batch_size}"] if series.batch_size else []
    return ", ".join([series.framework, *variant, *batch])


def _cells(
    series: Series, table: Table, rows: pd.DataFrame, definitions: Definitions
) -> Iterator[dict]:
    """The cells of one column, one dictionary per topology."""
    wanted = {
        "framework": series.framework,
        "variant": series.variant or table.variant,
        "model": series.model,
        "batch_size_per_device": series.batch_size or table.batch_size,
    }
    for column, value in wanted.items():
        rows = rows if value is None else rows[rows[column] == value]
    if rows.empty:
        raise ReperfError(f"{TABLES}: {table.id}: no published number belongs to {series!r}")
    known = definitions.variants.get(series.variant) if series.variant else None
    entry = series.system or definitions.systems[series.framework]
    system, _, variant = entry.partition("+")
    for _, printed in rows.groupby("topology", sort=False):
        fact = printed.iloc[0]
        cell = {
            "system": system,
            "variant": variant or (known.id if known else series.variant or ""),
            **fact[["model", "batch_size_per_device", "topology", *SHAPE, "source_doc"]],
            **printed.set_index("metric")["value"],
        }
        if fact["metric"] == "throughput":
            cell |= _spread(fact) | _speedup_of(fact, rows)
            cell["speedup_published"] = fact["speedup_published"]
        yield cell


def _speedup_of(fact: pd.Series, rows: pd.DataFrame) -> dict:
    """A cell's speedup over the fewest devices of its series, and their topology."""
    counted = rows[(rows["metric"] == "throughput") & rows["num_devices"].notna()]
    if counted.empty:
        return {"speedup": None, "baseline": ""}
    fewest = counted.loc[counted["num_devices"].idxmin()]
    known = fact["value"] is not None and fewest["value"] is not None
    ratio = speedup(fact["value"], fewest["value"]) if known else None
    return {"speedup": ratio, "baseline": fewest["topology"]}


def _spread(fact: pd.Series) -> dict:
    """Lowest, highest and number of the repeats whose median a cell shows, if published."""
    repeats = published_repeats()
    own = repeats[repeats["median_published"] == fact["value"]]
    for column in ("framework", "model", "precision", "batch_size_per_device", "topology"):
        own = own[own[column] == fact[column]]
    values = own["throughput"]
    if values.empty:
        return {"throughput_min": None, "throughput_max": None, "n": None}
    return {"throughput_min": min(values), "throughput_max": max(values), "n": len(values)}


def _typed(cells: pd.DataFrame) -> pd.DataFrame:
    """Counts as nullable integers and numbers as floats, whatever was printed."""
    counts = [name for name in (*SHAPE, "batch_size_per_device", "n") if name in cells]
    texts = ["series", "system", "variant", "model", "topology", "baseline", "source_doc"]
    numbers = cells.columns.difference([*counts, *texts])
    return cells.astype(dict.fromkeys(counts, "Int64") | dict.fromkeys(numbers, float))
