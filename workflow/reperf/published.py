"""The published reports, made again: their tables, and where their numbers contradict each other.

The facts are in data/published/, one row per published number; README.md there explains the
columns. None of it was measured by reperf, and nothing that was is mixed in.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import yaml

from reperf.errors import ReperfError
from reperf.layout import PUBLISHED_FILES
from reperf.systems.workloads import load_workloads, read_shape
from reperf.validation import Model

__all__ = ["Discrepancy", "DiscrepancyKind", "PublishedTable", "discrepancies", "epochs_beside"]
__all__ += ["load_tables", "published_for", "published_without_size"]

NUMBERS, REPEATS, DISCREPANCIES, TABLES = PUBLISHED_FILES

_SHAPE = ("num_nodes", "devices_per_node", "num_devices")
_COUNTS = ("batch_size_per_device", *_SHAPE, "repeat", "n")
_PRINTED = ("value", "speedup_published", "throughput", "median_published")

DiscrepancyKind = Literal["speedup", "value", "median", "label"]


@cache
def read_facts(path: Path) -> pd.DataFrame:
    """Read a file of facts, NUMBERS or REPEATS; all rows are kept, in their order.

    Printed numbers become `Decimal`, whose digits say how they were rounded, or None; counts become
    nullable integers. One column is added: topology, such as 2n8g, or 4n where nodes are counted.
    """
    facts = pd.read_csv(path, dtype=str, keep_default_na=False)
    for column in facts.columns.intersection(_COUNTS):
        facts[column] = pd.to_numeric(facts[column]).astype("Int64")
    for column in facts.columns.intersection(_PRINTED):
        numbers = [Decimal(text) if text else None for text in facts[column]]
        facts[column] = pd.Series(numbers, dtype=object)
    facts["topology"] = [
        f"{nodes}n" + ("" if pd.isna(devices) else f"{devices}g")
        for nodes, devices in zip(facts["num_nodes"], facts["devices_per_node"], strict=True)
    ]
    return facts


class Variant(Model):
    """A variant that the documents print: reperf's name for it, and the words that tables show."""

    id: str
    label: str


class Series(Model):
    """A column of a table: which rows of the document it shows."""

    framework: str
    variant: str | None = None  # as printed, instead of the table's
    model: str | None = None  # one of the table's
    batch_size: int | None = None  # instead of the table's
    system: str | None = None  # instead of the framework's; also an entry, such as "jax+no-clip"
    label: str | None = None  # instead of a label made of framework, variant and batch size

    @property
    def shown(self) -> str:
        """The label of the column."""
        if self.label:
            return self.label
        variant = [load_definitions().variants[self.variant].label] if self.variant else []
        batch = [f"batch {self.batch_size}"] if self.batch_size else []
        return ", ".join([self.framework, *variant, *batch])


class PublishedTable(Model):
    """One table of a published report: what tables.yaml says, and what follows from the facts."""

    id: str  # its name in paths
    title: str  # what was trained and how
    report: str  # the title of the report
    source: str  # the document that printed the numbers, as data/published/ names it
    workload: str = ""  # reperf's name of what is trained; empty if there are several models
    precision: str  # fp32 or amp
    batch_size: int | None = None  # per device; None if columns differ or the document has none
    notes: tuple[str, ...] = ()  # what to know when comparing the numbers
    models: tuple[str, ...]  # what was trained, as printed
    variant: str = ""  # of all series that name no other, as printed
    series: tuple[Series, ...]  # the columns, in order

    @cached_property
    def _facts(self) -> pd.DataFrame:
        """The rows of published.csv that the table may show."""
        numbers = read_facts(NUMBERS)
        # A document may print one number in two of its tables; it is one fact.
        return numbers[
            (numbers["source_doc"] == self.source)
            & numbers["model"].isin(self.models)
            & (numbers["precision"] == self.precision)
        ].drop_duplicates()

    @property
    def units(self) -> dict[str, str]:
        """What the table holds: metric -> unit, in the order shown."""
        units: dict[str, str] = dict(zip(self._facts["metric"], self._facts["unit"], strict=True))
        return units

    @cached_property
    def cells(self) -> pd.DataFrame:
        """One row per system and topology.

        Columns: series (the label to show), system, variant, model, batch_size_per_device,
        topology, num_nodes, devices_per_node, num_devices, source_doc, and one for each metric of
        `units`. For throughput also throughput_min, throughput_max and n, if the repeats were
        published; speedup, computed from the printed throughputs, over the fewest devices of the
        series, and baseline, the topology that has so many, both empty where only nodes are
        counted; and speedup_published.

        Raises:
            ReperfError: a series that no published number belongs to.
        """
        cells = pd.DataFrame([cell for series in self.series for cell in self._cells_of(series)])
        # Counts are nullable integers and numbers floats, whatever was printed.
        counts = cells.columns.intersection(_COUNTS)
        texts = ["series", "system", "variant", "model", "topology", "baseline", "source_doc"]
        numbers = cells.columns.difference([*counts, *texts])
        return cells.astype(dict.fromkeys(counts, "Int64") | dict.fromkeys(numbers, float))

    def _cells_of(self, series: Series) -> Iterator[dict[str, Any]]:
        wanted = {
            "framework": series.framework,
            "variant": series.variant or self.variant,
            "model": series.model,
            "batch_size_per_device": series.batch_size or self.batch_size,
        }
        facts = self._facts
        for column, value in wanted.items():
            facts = facts if value is None else facts[facts[column] == value]
        if facts.empty:
            raise ReperfError(f"{TABLES}: {self.id}: no published number belongs to {series!r}")
        known = load_definitions()
        system, _, variant = (series.system or known.systems[series.framework]).partition("+")
        if series.variant and not variant:
            named = known.variants.get(series.variant)
            variant = named.id if named else series.variant
        for _, printed in facts.groupby("topology", sort=False):
            fact = printed.iloc[0]
            cell = {
                "series": series.shown,
                "system": system,
                "variant": variant,
                **fact[["model", "batch_size_per_device", "topology", *_SHAPE, "source_doc"]],
                **printed.set_index("metric")["value"],
            }
            if fact["metric"] == "throughput":
                cell |= _spread(fact) | _speedup_of(fact, facts)
            yield cell

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
        """The cells of a table of epochs as figures take them, with seconds and memory."""
        assert self.epoch
        taken = self.cells["gpu_memory"].map(lambda mebibytes: f"{mebibytes * 2**20:.0f}")
        seconds = self.cells[self.epoch]
        return self.cells.assign(epoch_seconds=seconds, stage_memory=taken, status="not printed")

    def wide(self) -> pd.DataFrame:
        """The table as its report shows it.

        Of throughput, it has a row a topology: nodes, devices (unless CPU nodes are counted), and a
        column a series, with its speedup beside it if the report prints one. Of something else, a
        row a series and a column a metric.
        """
        if self.unit is None:
            titles = {
                metric: f"{metric.replace('_', ' ').replace('gpu', 'GPU')} ({unit})"
                for metric, unit in self.units.items()
            }
            return self.cells[["series", *titles]].rename(columns=titles)
        rows = {"num_nodes": "nodes", "num_devices": "devices"}
        if self.cells["num_devices"].isna().all():
            del rows["num_devices"]
        wide = self.cells.pivot(index=list(rows), columns="series")
        shown = {}
        for series in self.cells["series"].unique():
            shown[series] = wide["throughput", series]
            if wide["speedup_published", series].notna().any():
                shown[f"{series}: speedup"] = wide["speedup_published", series]
        return pd.DataFrame(shown).reset_index().rename(columns=rows)


class Definitions(Model):
    """What data/published/tables.yaml says; `unsaid` are variants that go without saying."""

    systems: dict[str, str]
    variants: dict[str, Variant]
    unsaid: dict[str, frozenset[str]]
    tables: tuple[PublishedTable, ...]


@cache
def load_definitions() -> Definitions:
    return Definitions.model_validate(yaml.safe_load(TABLES.read_text(encoding="utf-8")))


def load_tables() -> tuple[PublishedTable, ...]:
    """Every table of data/published/tables.yaml, in its order."""
    return load_definitions().tables


def published_for(workload: str, precision: str, batch_size: int) -> pd.DataFrame:
    """The published cells of the same workload, precision and batch size per device, each once.

    They trained on real data at the workload's usual shape, and each names its unit: compare only
    such suites with them. Cells whose document gives no batch size are left out. On the reports'
    GPUs `amp` is fp16. To the columns of `PublishedTable.cells` come report, table, workload,
    precision and unit.
    """
    columns = ("report", "workload", "precision", "unit")
    cells = pd.concat(
        table.cells.assign(table=table.id, **{name: getattr(table, name) for name in columns})
        for table in load_tables()
        if table.unit
    )
    same = (
        (cells["workload"] == workload)
        & (cells["precision"] == _as_published(precision))
        & (cells["batch_size_per_device"] == batch_size)
    )
    # One table's largest batch size may be another's usual one: it is still one cell.
    cells = cells[same].drop_duplicates(["source_doc", "system", "variant", "topology"])
    return cells.reset_index(drop=True)


def published_without_size(workload: str, precision: str) -> tuple[PublishedTable, ...]:
    """The tables of throughput of a workload whose documents name no batch size."""
    return tuple(
        table
        for table in load_tables()
        if table.unit
        and (table.workload, table.precision) == (workload, _as_published(precision))
        and table.cells["batch_size_per_device"].isna().all()
    )


def _as_published(precision: str) -> str:
    return "amp" if precision == "fp16" else precision


def epochs_beside(cells: pd.DataFrame) -> pd.DataFrame:
    """How long epochs of a suite's cells took others on its topologies, with how much memory.

    They are rows of `PublishedTable.epochs` with the table's `report`; none for an unusual shape. A
    document that gives no batch size fits all.
    """
    epochs = pd.concat(
        table.epochs().assign(report=table.report, precision=table.precision)
        for table in load_tables()
        if table.epoch
    )
    suite, sizes = cells.iloc[0], epochs["batch_size_per_device"]
    known = load_workloads().get(suite["workload"])
    usual = known is not None and read_shape(suite["shape"]) == known.default_shape
    source = "synthetic" if suite["input"] == "synthetic" else "real data"
    same = (
        (epochs["model"] == suite["workload"])
        & (epochs["precision"] == suite["precision"])
        & (sizes.isna() | sizes.isin(cells["batch_size_per_device"].dropna()))
        & epochs["variant"].str.endswith(source)
        & epochs["topology"].isin(cells["topology"])
    )
    return epochs[same & usual].reset_index(drop=True)


def speedup(throughput: Decimal, baseline: Decimal) -> Decimal:
    """How many times faster than a baseline: rounded half to even, once, to two decimals."""
    return (throughput / baseline).quantize(Decimal("0.01"), ROUND_HALF_EVEN)


def _speedup_of(fact: pd.Series, facts: pd.DataFrame) -> dict[str, Any]:
    """A cell's speedup over the fewest devices of its series, their topology; what is printed."""
    counted = facts[(facts["metric"] == "throughput") & facts["num_devices"].notna()]
    found = {"speedup": None, "baseline": "", "speedup_published": fact["speedup_published"]}
    if not counted.empty:
        fewest = counted.loc[counted["num_devices"].idxmin()]
        found["baseline"] = fewest["topology"]
        if fact["value"] is not None and fewest["value"] is not None:
            found["speedup"] = speedup(fact["value"], fewest["value"])
    return found


def _spread(fact: pd.Series) -> dict[str, Any]:
    """Lowest, highest and number of the repeats whose median a cell shows, if published."""
    repeats = read_facts(REPEATS)
    repeats = repeats[repeats["median_published"] == fact["value"]]
    for column in ("framework", "model", "precision", "batch_size_per_device", "topology"):
        repeats = repeats[repeats[column] == fact[column]]
    values = repeats["throughput"].tolist() or [None]
    return {"throughput_min": min(values), "throughput_max": max(values), "n": len(repeats) or None}


@dataclass(frozen=True)
class Discrepancy:
    """A contradiction among published numbers."""

    kind: DiscrepancyKind
    """Speedup (it does not follow from its throughputs), value (documents differ on a cell), median
    (it is not that of the cell's repeats) or label (documents print one series of numbers as two
    different things)."""
    where: str  # the cell, or the framework and model of the series
    what: str  # what is wrong, in words
    values: tuple[str, ...]  # the values that contradict each other, as printed or computed
    sources: tuple[str, ...]  # where each value is from

    def __str__(self) -> str:
        pairs = zip(self.values, self.sources, strict=True)
        return f"{self.where}: {self.what}: " + "; ".join(f"{v} ({s})" for v, s in pairs)


def discrepancies() -> list[Discrepancy]:
    """The contradictions among the published facts, kind by kind, in the order of the documents.

    data/published/find_discrepancies.py finds them.
    """
    rows = pd.read_csv(DISCREPANCIES, dtype=str, keep_default_na=False)
    return [
        Discrepancy(kind, where, what, tuple(values["value"]), tuple(values["source"]))
        for (_, kind, where, what), values in rows.groupby(
            ["number", "kind", "where", "what"], sort=False
        )
    ]
