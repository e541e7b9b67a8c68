"""The contents of a report, gathered once for both of its forms; its prose is in templates/.

Everything comes from the configuration, the run records, the two tables and the published facts.
Neither the clock nor this machine has a say: equal inputs give equal reports.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self, TypeVar

import pandas as pd

from reperf.config import Report, Run, Suite, Window
from reperf.config.words import LARGEST
from reperf.drawing.labels import series_of, system_title, title_of, unit_of
from reperf.host import Environment, Host
from reperf.layout import ALL_MEASUREMENTS, ALL_SUMMARY, FIGURE_KINDS
from reperf.measuring import SUMMED
from reperf.measuring.agreement import initial_loss_outliers
from reperf.measuring.statistics import (
    WIDE,
    Verdict,
    compare,
    repeats_for_interval,
    repeats_to_resolve,
)
from reperf.measuring.together import LEAST_OVERLAP
from reperf.printed import ABSENT, day_and_time, memory, number, percent
from reperf.published import (
    PublishedTable,
    epochs_beside,
    load_tables,
    published_for,
    published_without_size,
)
from reperf.published.discrepancies import Discrepancy, DiscrepancyKind, discrepancies
from reperf.records.cell_key import short
from reperf.records.diagnosis import Diagnosis
from reperf.records.run_record import RunRecord
from reperf.report.cell_views import BESIDE, BOUND_BY_LOADER, CellView, Row, RunView
from reperf.report.sharing import SharedCell, shared_cells
from reperf.systems import load_systems, load_workloads
from reperf.systems.workloads import Flops
from reperf.text import count

Item = TypeVar("Item")
PublishedKey = tuple[str, str, int | None, str]
CELL_KEY = [
    *("suite", "system", "variant", "parallel", "servers", "batch_size_per_device"),
    *("topology", "source"),
]


class Further(NamedTuple):
    """A column that tables show on demand."""

    name: str
    heading: str
    text: Callable[[Row], str]
    """The text for a row of summary.csv; a dash if the row holds no value."""


def _range_of(row: Row) -> str:
    if pd.isna(row.speedup_low):
        return ABSENT
    return f"{number(row.speedup_low)} to {number(row.speedup_high)}"


FURTHER = (
    Further("each", "Median a device", lambda row: number(row.per_device)),
    Further("range", "Speedup of single repeats", _range_of),
    Further("step", "ms a step", lambda row: number(row.step_ms)),
    Further("flops", "FLOP utilisation", lambda row: percent(row.flop_utilisation)),
    Further("memory", "Peak memory", lambda row: memory(row.peak_memory, row.peak_memory_is)),
    Further("energy", "J a sample", lambda row: number(row.joules_per_sample)),
    Further("load", "Other work", lambda row: percent(row.load)),
    Further("hosts", "Hosts", lambda row: row.hosts or ABSENT),
    Further("date", "Started", lambda row: day_and_time(row.date) if row.date else ABSENT),
    Further("key", "Key", lambda row: short(row.key) or ABSENT),
)


@dataclass(frozen=True)
class Rival:
    """A cell compared with the fastest one of its topology."""

    cell: CellView
    share: float
    """Its median divided by that of the fastest."""
    verdict: Verdict


@dataclass(frozen=True)
class Ranking:
    """The measured cells of one topology: the fastest, and the others by their medians."""

    topology: str
    fastest: CellView
    others: tuple[Rival, ...]

    @classmethod
    def of(cls, topology: str, cells: list[CellView]) -> Self:
        """Rank cells of one topology."""
        fastest, *others = sorted(cells, key=lambda cell: -cell.row.throughput_median)
        verdicts = compare([cell.throughputs for cell in others], fastest.throughputs)
        best = fastest.row.throughput_median
        rivals = (
            Rival(cell, cell.row.throughput_median / best, verdict)
            for cell, (verdict, _) in zip(others, verdicts, strict=True)
        )
        return cls(topology, fastest, tuple(rivals))

    @property
    def too_few(self) -> str:
        """How many repeats could resolve all cells, if theirs are too few; "" if they suffice.

        A hint, not a promise: cells whose repeats overlap stay unresolved.
        """
        fewest = min(cell.row.n for cell in (self.fastest, *(rival.cell for rival in self.others)))
        needed = repeats_to_resolve(len(self.others))
        return f"{needed} repeats could" if fewest < needed else ""


class LooseTable(NamedTuple):
    """A published table that names no batch size, so that nothing in it is the same cell."""

    table: PublishedTable
    rows: tuple[tuple[CellView, Row], ...]
    """Measured cells, each with what was published of its system and topology."""


@dataclass(frozen=True)
class SuiteView:
    """One suite of the report."""

    config: Suite
    title: str
    unit: str
    sets: dict[str, list[str]]
    """The data sets that were read, with their samples -> their bytes in each format."""
    cells: tuple[CellView, ...]
    unplaced: tuple[Row, ...]
    """The logs that are in no cell: their rows of measurements.csv."""
    without_size: tuple[PublishedTable, ...] = ()
    """Published tables of the same workload and precision that name no batch size."""
    published_epochs: pd.DataFrame | None = None
    """Of the same training on the same topologies; None where nothing published is shown."""

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def has_usual_shape(self) -> bool:
        """Whether its shape is its workload's usual one."""
        return self.config.shape == load_workloads()[self.config.workload].default_shape

    @property
    def searched(self) -> list[str]:
        """The entries whose batch size is the largest that trains."""
        sizes = {one.id: one.batch_size or self.config.batch_size for one in self.config.entries}
        return [name for name, size in sizes.items() if size == LARGEST]

    @property
    def loose_tables(self) -> list[LooseTable]:
        """The rows of such tables on systems and topologies that were measured here."""
        measured = {
            (cell.row.system, cell.row.variant, cell.row.topology): cell for cell in self.measured
        }
        loose_tables = []
        for table in self.without_size:
            rows = []
            for row in table.cells.itertuples():
                # If a table prints only the number of nodes, each node has one trainer.
                topology = row.topology + ("1g" if pd.isna(row.devices_per_node) else "")
                if cell := measured.get((row.system, row.variant, topology)):
                    rows.append((cell, row))
            if rows:
                loose_tables.append(LooseTable(table, tuple(rows)))
        return loose_tables

    @property
    def baseline(self) -> str | None:
        """The baseline of all speedups; None if series differ, or none has a speedup."""
        baselines = {cell.row.baseline for cell in self.cells if pd.notna(cell.row.speedup)}
        return baselines.pop() if len(baselines) == 1 else None

    @property
    def figures(self) -> tuple[str, ...]:
        """The kinds of figures to show: throughput alone if no series scales."""
        counts = {cell.row.num_nodes * cell.row.devices_per_node for cell in self.measured}
        return FIGURE_KINDS[:1] if len(counts) == 1 else FIGURE_KINDS

    @property
    def speedup(self) -> str:
        """The heading of the column of speedups."""
        return f"speedup over {self.baseline}" if self.baseline else "speedup"

    @property
    def measured(self) -> list[CellView]:
        return [cell for cell in self.cells if cell.measured]

    @property
    def tried(self) -> list[CellView]:
        """The cells that could run at all: those of the suite's table."""
        return [cell for cell in self.cells if cell.row.status != "unsupported"]

    @property
    def also(self) -> str | None:
        """The second unit of the workload, if a cell's logs count it."""
        units = (cell.row.also_unit for cell in self.cells if pd.notna(cell.row.also_median))
        return next(units, None)

    @property
    def further(self) -> list[Further]:
        """The columns on demand that hold a value for some cell."""
        rows = [cell.row for cell in self.measured]
        return [column for column in FURTHER if any(column.text(row) != ABSENT for row in rows)]

    @property
    def has_small_samples(self) -> bool:
        """Whether a cell has several repeats, but too few for an interval of the median."""
        return any(1 < cell.row.n < repeats_for_interval() for cell in self.measured)

    @property
    def crops_differ(self) -> bool:
        """Whether TensorFlow cropped the images of some measured cells, but not of all."""
        records = [run.record for cell in self.measured for run in cell.runs]
        runs = [record.run for record in records if record]
        return len({_cropped_by_tensorflow(run) for run in runs if _reads_images(run)}) > 1

    @property
    def by_series(self) -> dict[str, list[CellView]]:
        """The cells of the table, by series."""
        cells = defaultdict(list)
        for cell in self.tried:
            cells[cell.series].append(cell)
        return dict(cells)

    @property
    def runs(self) -> list[RunView]:
        return [run for cell in self.cells for run in cell.runs]

    @property
    def shared(self) -> list[SharedCell]:
        """The cells whose devices share a model, and the data-parallel cells beside them."""
        return shared_cells(self.cells)

    @property
    def epochs_of_others(self) -> list[Row]:
        """The published epochs to show beside the suite's; none if no devices share a model."""
        if self.published_epochs is None or not self.shared:
            return []
        return list(self.published_epochs.itertuples())

    @property
    def rankings(self) -> list[Ranking]:
        """A ranking of each topology that has more than one cell."""
        measured = defaultdict(list)
        for cell in self.measured:
            measured[cell.row.topology].append(cell)
        return [Ranking.of(name, cells) for name, cells in measured.items() if len(cells) > 1]

    @property
    def fastest(self) -> CellView | None:
        """The cell with the highest throughput."""
        return max(self.measured, key=lambda cell: cell.row.throughput_median, default=None)


@dataclass(frozen=True)
class Timing:
    """The length and the window of some suites' runs.

    Attributes:
        iterations: how many each run trains; None for logs of others.
        window: the measured iterations.
        suites: the names of the suites.
    """

    iterations: int | None
    window: Window
    suites: tuple[str, ...]


@dataclass(frozen=True)
class Machine:
    """Machines that differ only in their names."""

    host: Host
    names: tuple[str, ...]

    @property
    def title(self) -> str:
        """Its GPUs, or else its CPU, and the number of such nodes."""
        gpus = self.host.gpus
        title = f"{len(gpus)} × {gpus[0].name}" if gpus else self.host.cpu  # noqa: RUF001
        return title + (f", {len(self.names)} nodes" if len(self.names) > 1 else "")


@dataclass(frozen=True)
class Setup:
    """The environment of one system."""

    system: str
    framework: str
    environment: Environment


@dataclass(frozen=True)
class Context:
    """The whole report."""

    config: Report
    records: tuple[RunRecord, ...]
    suites: tuple[SuiteView, ...]
    published: tuple[PublishedTable, ...]
    discrepancies: Mapping[DiscrepancyKind, list[Discrepancy]]
    diagnosis: Diagnosis | None
    tables: tuple[str, ...]
    """The files that hold the numbers."""
    limits: ClassVar[dict[str, float]] = {
        "bound_by_loader": BOUND_BY_LOADER,
        "beside": BESIDE,
        "scattered": WIDE - 1,
        "repeats": repeats_for_interval(),
        "overlap": LEAST_OVERLAP,
    }
    """Limits that the texts name: shares, and the repeats that an interval of the median takes."""

    @property
    def together(self) -> bool:
        """Whether trainers that keep their own time were measured."""
        return any(run.row.method == SUMMED for suite in self.suites for run in suite.runs)

    @property
    def cells(self) -> list[CellView]:
        return [cell for suite in self.suites for cell in suite.cells]

    @property
    def tried(self) -> list[CellView]:
        return [cell for suite in self.suites for cell in suite.tried]

    @property
    def not_measured(self) -> list[tuple[SuiteView, CellView]]:
        """The cells of which some run has no number, each with its suite."""
        return [
            (suite, cell)
            for suite in self.suites
            for cell in suite.tried
            if cell.row.status != "ok"
        ]

    @property
    def marks(self) -> dict[str, int]:
        """How many cells are bound by their loader, or were measured beside other work."""
        counts = Counter(mark for cell in self.cells for mark in cell.marks)
        return {
            mark: counts[mark] for mark in ("bound by loader", "beside other work") if counts[mark]
        }

    @property
    def flops(self) -> dict[str, Flops]:
        """Title of each workload with a FLOP utilisation -> what a sample costs."""
        shown = {cell.row.workload for cell in self.cells if pd.notna(cell.row.flop_utilisation)}
        workloads = [load_workloads()[workload] for workload in sorted(shown)]
        return {workload.title: workload.flops for workload in workloads if workload.flops}

    @property
    def further(self) -> list[Further]:
        """The columns on demand of some suite's table."""
        return [
            column for column in FURTHER if any(column in suite.further for suite in self.suites)
        ]

    @property
    def left_out(self) -> dict[str, list[str]]:
        """The cells that cannot run at all: reason -> titles of the systems."""
        why: dict[str, list[str]] = defaultdict(list)
        for cell in self.cells:
            title = system_title(cell.row.system)
            if cell.row.status == "unsupported" and title not in why[cell.row.reason]:
                why[cell.row.reason].append(title)
        return dict(why)

    @property
    def what_was_measured(self) -> str:
        """The number of runs that were trained here, and of logs that others made."""
        placed = sum(run.row.source != "" for suite in self.suites for run in suite.runs)
        others = placed + sum(len(suite.unplaced) for suite in self.suites)
        runs = [count(len(self.records), "training run")] if self.records or not others else []
        return " and ".join(runs + ([f"{count(others, 'log')} of others"] if others else []))

    @property
    def statuses(self) -> Counter[str]:
        """Status -> number of cells that could run and ended so."""
        return Counter(cell.row.status for cell in self.tried)

    @property
    def days(self) -> tuple[str, str] | None:
        """The days of the first run's start and the last one's end, ISO 8601, UTC."""
        if not self.records:
            return None
        first = min(record.started for record in self.records)
        return first[:10], max(record.ended for record in self.records)[:10]

    @property
    def device(self) -> str:
        """What the report counts as a device."""
        threads = count(self.config.threads_per_device, "CPU thread")
        kinds = {"cuda": "a GPU", "cpu": f"a training process with {threads}"}
        shown = {kinds[record.run.device] for record in self.records}
        return " or, in suites on the CPU, ".join(sorted(shown))

    @property
    def timings(self) -> list[Timing]:
        """One for suites that do not differ; published methods have windows of their own."""
        suites: dict[tuple[int | None, Window], dict[str, None]] = defaultdict(dict)
        for suite in self.config.suites:
            if suite.entries:
                suites[suite.iterations, suite.window][suite.name] = None
            for source in suite.sources:
                window = source.window or suite.window
                is_there = suite.name in suites.get((suite.iterations, window), ())
                if source.method == "window" and not is_there:
                    suites[None, window][suite.name] = None
        return [Timing(*timing, tuple(names)) for timing, names in suites.items()]

    @property
    def machines(self) -> list[Machine]:
        names = defaultdict(set)
        for record in self.records:
            anonymous = [gpu.model_copy(update={"uuid": ""}) for gpu in record.host.gpus]
            host = record.host.model_copy(update={"hostname": "", "gpus": tuple(anonymous)})
            names[host.model_dump_json()].add(record.host.hostname)
        return [
            Machine(Host.model_validate_json(host), tuple(sorted(hostnames)))
            for host, hostnames in names.items()
        ]

    @property
    def setups(self) -> list[Setup]:
        return _distinct(
            Setup(
                system_title(record.run.system),
                _framework(record.run.system, record.environment),
                record.environment,
            )
            for record in self.records
        )

    @property
    def commits(self) -> list[str]:
        """The commits of reperf that ran, with a "+" if there were changes on top."""
        return _distinct(record.commit for record in self.records if record.git_commit)


def gather(
    config: Report,
    records: Iterable[RunRecord],
    measurements: pd.DataFrame,
    summary: pd.DataFrame,
    diagnosis: Diagnosis | None = None,
    *,
    published: bool = True,
    tables: Sequence[str] = (ALL_MEASUREMENTS, ALL_SUMMARY),
) -> Context:
    """Gather the contents of a report.

    Args:
        config: the configuration.
        records: of the runs; records of other runs are ignored.
        measurements: as read_measurements gives them.
        summary: as read_summary gives it.
        diagnosis: what `reperf doctor` found, if it was run.
        published: whether to show the numbers of published reports beside the measured.
        tables: the files that hold the numbers, for the reader.
    """
    by_log = {("", str(record.run.log)): record for record in records}
    shared = [suite.name for suite in config.suites if not _reads_images(suite)]
    usual = initial_loss_outliers(measurements[measurements["suite"].isin(shared)])
    runs = defaultdict(list)
    for row in measurements.itertuples():
        record = by_log.get((row.source, row.log))
        runs[_key(row)].append(RunView(row, record, usual.get(row.Index)))
    nowhere = measurements[measurements["topology"] == ""]
    used = [run.record for views in runs.values() for run in views if run.record]
    by_kind = defaultdict(list)
    for discrepancy in discrepancies() if published else ():
        by_kind[discrepancy.kind].append(discrepancy)
    return Context(
        config=config,
        records=tuple(used),
        suites=tuple(
            _suite(suite, cells, runs, unplaced, published=published)
            for suite, cells, unplaced in (
                (suite, *(table[table["suite"] == suite.name] for table in (summary, nowhere)))
                for suite in config.suites
            )
            if len(cells) or len(unplaced)
        ),
        published=load_tables() if published else (),
        discrepancies=dict(by_kind),
        diagnosis=diagnosis,
        tables=tuple(tables),
    )


def _suite(
    suite: Suite,
    cells: pd.DataFrame,
    runs: Mapping[tuple[str, ...], list[RunView]],
    unplaced: pd.DataFrame,
    *,
    published: bool,
) -> SuiteView:
    unit = unit_of(cells)
    # Published reports trained on real samples, as usual.
    usual_shape = load_workloads()[suite.workload].default_shape
    beside = published and suite.input != "synthetic" and suite.shape == usual_shape
    others = _published(suite, cells, unit) if beside else {}
    records = [run.record for row in cells.itertuples() for run in runs[_key(row)]]
    return SuiteView(
        config=suite,
        title=title_of(cells if len(cells) else unplaced),
        unit=unit,
        sets=_sets(filter(None, records)),
        cells=tuple(
            CellView(
                row=row,
                series=series,
                runs=tuple(runs[_key(row)]),
                published=tuple(others.get(_published_key(row), ())),
            )
            for row, series in zip(cells.itertuples(), series_of(cells), strict=True)
        ),
        unplaced=tuple(unplaced.itertuples()),
        without_size=published_without_size(suite.workload, suite.precision) if beside else (),
        published_epochs=epochs_beside(cells) if published and len(cells) else None,
    )


def _sets(records: Iterable[RunRecord]) -> dict[str, list[str]]:
    """The data sets that runs have read -> their bytes, which depend on the format."""
    read = _distinct((record.data_set, record.run.input) for record in records if record.data_set)
    sizes = defaultdict(list)
    for data, form in read:
        name = f"{data.name} ({data.samples:,} {data.counted}"
        sizes[name].append(f"{data.bytes / 1e6:,.1f} MB as {form}")
    return dict(sizes)


def _reads_images(part: Suite | Run) -> bool:
    """Whether it reads images, which each system crops at random in its own way."""
    return part.input != "synthetic" and load_workloads()[part.workload].data == "images"


def _cropped_by_tensorflow(run: Run) -> bool:
    system = load_systems().get(run.system)
    by_dali = "dali" in (run.variant or "").split("+")
    return system is not None and system.framework == "tensorflow" and not by_dali


def _published(suite: Suite, cells: pd.DataFrame, unit: str) -> Mapping[PublishedKey, list[Row]]:
    """The published cells that may stand beside a suite's, by the key that they must share."""
    cells_of: dict[PublishedKey, list[Row]] = defaultdict(list)
    for size in cells["batch_size_per_device"].dropna().unique():
        for row in published_for(suite.workload, suite.precision, size).itertuples():
            if row.unit == unit:
                cells_of[_published_key(row)].append(row)
    return cells_of


def _published_key(row: Row) -> PublishedKey:
    size = row.batch_size_per_device
    return row.system, row.variant, None if pd.isna(size) else int(size), row.topology


def _key(row: Row) -> tuple[str, ...]:
    """The key of a row's cell, in either table."""
    return tuple(str(getattr(row, column)) for column in CELL_KEY)


def _framework(system: str, environment: Environment) -> str:
    """The framework and its version, such as "torch 2.13.0"."""
    known = load_systems().get(system)
    return f"{known.framework if known else system} {environment.framework or ''}".strip()


def _distinct(items: Iterable[Item]) -> list[Item]:
    distinct: list[Item] = []
    for item in items:
        if item not in distinct:
            distinct.append(item)
    return distinct
