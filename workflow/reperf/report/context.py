"""The contents of a report, gathered once for both of its forms; its prose is in templates/.

Everything comes from the configuration, the run records, the two tables and the published facts.
Neither the clock nor this machine has a say: equal inputs give equal reports.
"""

from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar, NamedTuple, TypeVar

import pandas as pd

from reperf.config import Report, Run, Suite, Window
from reperf.config.words import LARGEST
from reperf.drawing.labels import MOST_HOSTS, repeats_of, series_of, system_title, title_of, unit_of
from reperf.drawing.panels import Panel, Rival, Row, cell_of, finding, panels, step_times_of
from reperf.host import Environment, Host
from reperf.layout import ALL_MEASUREMENTS, ALL_SUMMARY, FIGURE_KINDS
from reperf.measuring import SUMMED
from reperf.measuring.async_trainers import LEAST_OVERLAP
from reperf.measuring.marks import BOUND_BY_LOADER, BUSY, NOT_USABLE, STRAY, THROTTLED, WAITED
from reperf.measuring.node_effects import SlowNode, slow_nodes, with_marks
from reperf.measuring.statistics import WIDE, Ratio, no_turns, ratio, repeats_for_interval
from reperf.measuring.summary import strays_of
from reperf.number_format import (
    ABSENT,
    day_and_time,
    in_four_digits,
    memory,
    number,
    percent,
    spread,
)
from reperf.published import PublishedTable, epochs_beside, published_for, published_without_size
from reperf.records.cell_key import short
from reperf.records.diagnosis import Diagnosis
from reperf.records.run_record import BESIDE, UNUSABLE, RunRecord
from reperf.report.cell_views import CellView, RunView, SharedCell, shared_cells
from reperf.report.scale import Scale
from reperf.systems import load_systems
from reperf.systems.workloads import Flops, load_workloads
from reperf.tables import IDENTITY, SUMMARY, table_of
from reperf.text import count

Item = TypeVar("Item")
PublishedKey = tuple[str, str, int | None, str]


class Further(NamedTuple):
    """A column that tables show on demand."""

    name: str
    heading: str
    text: Callable[[Row], str]  # for a row of summary.csv; a dash if it holds no value


def _range_of(row: Row) -> str:
    if pd.isna(row.speedup_low):
        return ABSENT
    return f"{number(row.speedup_low)} to {number(row.speedup_high)}"


def _interval_of(row: Row) -> str:
    if pd.isna(row.ci_level):
        return ABSENT
    ends = f"{in_four_digits(row.ci_low)} to {in_four_digits(row.ci_high)}"
    return f"{ends} ({percent(row.ci_level)})"


FURTHER = (
    Further("least", "Min", lambda row: spread(row.throughput_min, row.n)),
    Further("greatest", "Max", lambda row: spread(row.throughput_max, row.n)),
    Further("iqr", "IQR", lambda row: in_four_digits(row.throughput_iqr)),
    Further("interval", "Interval of the median", _interval_of),
    Further("each", "Median per device", lambda row: in_four_digits(row.per_device)),
    Further("range", "Speedup of single repeats", _range_of),
    Further("step", "ms per step", lambda row: in_four_digits(row.step_ms)),
    Further("flops", "FLOP utilisation", lambda row: percent(row.flop_utilisation)),
    Further(
        "sheet", "Data sheet FLOP utilisation", lambda row: percent(row.data_sheet_utilisation)
    ),
    Further("memory", "Peak memory", lambda row: memory(row.peak_memory, row.peak_memory_is)),
    Further("estimate", "Estimated memory", lambda row: memory(row.estimated_memory, "")),
    Further("energy", "J per sample", lambda row: in_four_digits(row.joules_per_sample)),
    Further("load", "Other work", lambda row: percent(row.load)),
    Further("hosts", "Hosts", lambda row: row.hosts or ABSENT),
    Further("date", "Started", lambda row: day_and_time(row.date) if row.date else ABSENT),
    Further("key", "Key", lambda row: short(row.key) or ABSENT),
)


class LoaderCost(NamedTuple):
    """A cell beside that of its twin whose samples need no loader."""

    cell: CellView
    twin: CellView
    ratio: Ratio  # its throughput over the twin's


class LooseTable(NamedTuple):
    """A published table that names no batch size, so that nothing in it is the same cell."""

    table: PublishedTable
    rows: tuple[tuple[CellView, Row], ...]  # measured cells, each with what was published


@dataclass(frozen=True)
class SuiteView:
    """One suite of the report."""

    config: Suite
    title: str
    unit: str
    sets: dict[str, list[str]]  # data sets that were read -> their bytes in each format
    cells: tuple[CellView, ...]
    unplaced: tuple[Row, ...]  # the logs that are in no cell: their rows of measurements.csv
    without_size: tuple[PublishedTable, ...] = ()  # published tables that name no batch size
    published_epochs: pd.DataFrame | None = None  # of the same training on the same topologies

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

    @cached_property
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

    @cached_property
    def baseline(self) -> str | None:
        """The baseline of all speedups; None if series differ, or none has a speedup."""
        baselines = {cell.row.baseline for cell in self.cells if pd.notna(cell.row.speedup)}
        return baselines.pop() if len(baselines) == 1 else None

    @property
    def figures(self) -> tuple[str, ...]:
        """The kinds of figures to show beside the panels: those that have something to show."""
        shows = {
            "speedup": self.scales,
            "efficiency": self.scales,
            "steps": any(len(step_times_of(run.row)) > 1 for run in self.runs),
            "energy": any(pd.notna(cell.row.joules_per_sample) for cell in self.cells),
            "utilisation": any(pd.notna(cell.row.flop_utilisation) for cell in self.cells),
        }
        return tuple(kind for kind in FIGURE_KINDS if shows.get(kind))

    @property
    def scales(self) -> bool:
        """Whether to show speedups: those of baselines alone are 1 by definition."""
        return any(cell.scales for cell in self.cells)

    @property
    def speedup(self) -> str:
        """The heading of the column of speedups."""
        return f"speedup over {self.baseline}" if self.baseline else "speedup"

    @cached_property
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

    @cached_property
    def further(self) -> list[Further]:
        """The columns on demand that hold a value for some cell."""
        rows = [cell.row for cell in self.measured]
        return [column for column in FURTHER if any(column.text(row) != ABSENT for row in rows)]

    @property
    def crops_differ(self) -> bool:
        """Whether TensorFlow cropped the images of some measured cells, but not of all."""
        runs = [run.record.run for cell in self.measured for run in cell.runs if run.record]
        images = {name for name, known in load_workloads().items() if known.data == "images"}
        read = [run for run in runs if run.input != "synthetic" and run.workload in images]
        return len(set(map(_cropped_by_tensorflow, read))) > 1

    @property
    def runs(self) -> list[RunView]:
        return [run for cell in self.cells for run in cell.runs]

    @cached_property
    def shared(self) -> list[SharedCell]:
        """The cells whose devices share a model, and the data-parallel cells beside them."""
        return shared_cells(self.cells)

    @property
    def epochs_of_others(self) -> list[Row]:
        """The published epochs to show beside the suite's; none if no devices share a model."""
        if self.published_epochs is None or not self.shared:
            return []
        return list(self.published_epochs.itertuples())

    @cached_property
    def panels(self) -> list[Panel[CellView]]:
        """The cells of each device count, compared with its fastest."""
        return panels(self.cells)

    @property
    def finding(self) -> str:
        """One sentence with what the numbers say."""
        return finding(self.panels)

    @property
    def apart(self) -> list[tuple[CellView, CellView]]:
        """Pairs with the fastest cell of a device count whose repeats were not interleaved.

        All runs of the first cell had started before any run of the second did.
        """
        pairs = []
        for panel in self.panels:
            cells = [rival.cell for rival in panel.ranked]
            turns = no_turns([cell.speed for cell in cells], [cell.started for cell in cells])
            pairs += [(cells[before], cells[after]) for before, after in turns]
        return pairs

    @cached_property
    def compared(self) -> list[tuple[CellView, Rival[CellView] | None]]:
        """The rows of the table: by device count, the fastest first; without a number, no rival."""
        rows: list[tuple[CellView, Rival[CellView] | None]] = []
        for panel in self.panels:
            rows += [(rival.cell, rival) for rival in panel.ranked]
            rows += [(cell, None) for cell in panel.missing]
        return rows

    @property
    def scale(self) -> Scale:
        """The axis of all panels: runs and intervals, as shares of the fastest median."""
        shares: list[float] = []
        for panel in self.panels:
            for rival in panel.ranked:
                shares += [speed / panel.first.cell.speed for speed in rival.cell.speeds]
            for rival in panel.ranked[1:]:
                shares += [end for end in (rival.ratio.low, rival.ratio.high) if end is not None]
        return Scale.of(shares)

    @property
    def repeats(self) -> str:
        """How many runs a median is of: "n = 7"; "" if nothing was measured."""
        return repeats_of(pd.DataFrame({"n": [cell.row.n for cell in self.cells]}))


@dataclass(frozen=True)
class Timing:
    """The length and the window of some suites' runs."""

    iterations: int | None  # how many each run trains; None for logs of others
    window: Window  # the measured iterations
    suites: tuple[str, ...]  # the names of the suites


@dataclass(frozen=True)
class Machine:
    """Machines that differ only in their names."""

    host: Host
    names: tuple[str, ...]

    @property
    def shown_names(self) -> str:
        """Their names, of many the first."""
        return ", ".join(self.names) if len(self.names) <= MOST_HOSTS else f"{self.names[0]}, ..."

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
    published: bool  # whether the page of the published reports lies beside this one
    diagnosis: Diagnosis | None
    tables: tuple[str, ...]  # the files that hold the numbers
    archives: dict[str, str]  # the archives of the suites, each with its SHA-256
    slow_nodes: tuple[SlowNode, ...] = ()  # according to all single-node runs
    limits: ClassVar[dict[str, float]] = {
        "bound_by_loader": BOUND_BY_LOADER,
        "beside": BESIDE,
        "unusable": UNUSABLE,
        "throttled": THROTTLED,
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
        tried = ((suite, cell) for suite in self.suites for cell in suite.tried)
        return [(suite, cell) for suite, cell in tried if cell.row.status != "ok"]

    @property
    def marks(self) -> dict[str, int]:
        """What is wrong with numbers, in words -> how many cells it is wrong with."""
        wrong = {
            (BUSY, NOT_USABLE): "shared the machine with other work",
            (WAITED,): "waited for data",
            ("throttled",): "ran throttled",
            ("scattered",): "scattered",
            (STRAY,): "started from another loss",
            ("a gap in",): "with a gap in the window",
            ("loss not", "the batch", "not one", "trained", "clocks differ"): "otherwise doubtful",
        }  # how marks begin -> what such cells did; a slow node has a sentence of its own
        pairs = product(wrong.items(), self.cells)
        return Counter(what for (marks, what), cell in pairs if cell.has(*marks))

    @property
    def on_slow_nodes(self) -> list[str]:
        """A sentence for each slow node: by how much, and which medians it moved."""
        titles = {cell_of(cell.row): (cell.series, cell.row) for cell in self.cells}
        sentences = []
        for node in self.slow_nodes:
            moved = []
            for cell, median, without in node.moved:
                series, row = titles[cell]
                left = "all its runs" if without is None else f"{in_four_digits(without)} without"
                shown = f"{in_four_digits(median)} {row.unit}, {left}"
                moved.append(f"{row.suite}: {series} on {row.topology} ({shown})")
            sentences.append(
                f"{node.name} is {node.slower:.1f} % slower than the other nodes' median "
                f"({node.low:.1f} to {node.high:.1f} %, by {count(node.runs, 'run')}), and moves "
                f"the medians of {'; '.join(moved)}"
            )
        return sentences

    @property
    def unusable(self) -> list[CellView]:
        """The cells whose numbers are of no use; the one with the most other work first."""
        return sorted((c for c in self.cells if c.unusable), key=lambda cell: -cell.row.load)

    def scale_of(self, costs: Iterable[LoaderCost]) -> Scale:
        """The axis of what loaders cost: runs, as shares of the twin's median."""
        return Scale.of(
            speed / cost.twin.speed
            for cost in costs
            for speed in (*cost.cell.speeds, *cost.twin.speeds)
        )

    def loader_costs(self, suite: SuiteView) -> list[LoaderCost]:
        """The measured cells of a suite beside those of its twin with synthetic input."""
        synthetic = [one for one in self.suites if one.config.input == "synthetic"]
        twins = {_alike(cell): cell for one in synthetic for cell in one.measured}
        if suite in synthetic:
            return []
        pairs = [(cell, twins.get(_alike(cell))) for cell in suite.measured]
        return [
            LoaderCost(cell, twin, ratio(cell.speeds, twin.speeds)) for cell, twin in pairs if twin
        ]

    @property
    def device_counts(self) -> dict[int, str]:
        """The numbers of devices on which something was tried -> what people call them."""
        titles = {panel.devices: panel.title for suite in self.suites for panel in suite.panels}
        return {devices: titles[devices] for devices in sorted(titles)}

    @property
    def download(self) -> str:
        """The cells as CSV with their marks, in base64."""
        rows = [cell.row._asdict() | {"marks": "; ".join(cell.marks)} for cell in self.cells]
        return b64encode(table_of(rows, SUMMARY).encode()).decode()

    @property
    def flops(self) -> dict[str, Flops]:
        """Title of each workload with a FLOP utilisation -> what a sample costs."""
        shown = {
            cell.row.workload
            for cell in self.cells
            if pd.notna([cell.row.flop_utilisation, cell.row.data_sheet_utilisation]).any()
        }
        known = load_workloads()
        workloads = [known[workload] for workload in sorted(shown & known.keys())]
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
    def days(self) -> tuple[str, ...]:
        """The days of the first run's start and the last one's end, ISO 8601, UTC."""
        times = [time for record in self.records for time in (record.started, record.ended)]
        return (min(times)[:10], max(times)[:10]) if times else ()

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
                ", ".join(filter(None, (system_title(record.run.system), record.run.label))),
                _framework(record.run.system, record.environment) + _optimizer(record),
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
    archives: Mapping[str, str] | None = None,
) -> Context:
    """Gather the contents of a report.

    Args:
        records: of the runs; records of other runs are ignored.
        measurements: as read_measurements gives them.
        summary: as read_summary gives it.
        published: whether to show the numbers of published reports beside the measured.
        tables: the files that hold the numbers, for the reader.
        archives: the archives of the suites, each with its SHA-256.
    """
    by_log = {("", str(record.run.log)): record for record in records}
    usual = strays_of(measurements)
    slow = slow_nodes(measurements)
    summary = with_marks(summary, slow)
    runs = defaultdict(list)
    for row in measurements.itertuples():
        record = by_log.get((row.source, row.log))
        runs[cell_of(row)].append(RunView(row, record, usual.get(row.Index)))
    nowhere = measurements[measurements["topology"] == ""]
    used = [run.record for views in runs.values() for run in views if run.record]
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
        published=published,
        diagnosis=diagnosis,
        tables=tuple(tables),
        archives=dict(archives or {}),
        slow_nodes=tuple(slow),
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
    usual = suite.shape == load_workloads()[suite.workload].default_shape
    beside = published and suite.input != "synthetic" and usual
    others = _published(suite, cells, unit) if beside else {}
    records = [run.record for row in cells.itertuples() for run in runs[cell_of(row)]]
    return SuiteView(
        config=suite,
        title=title_of(cells if len(cells) else unplaced),
        unit=unit,
        sets=_sets(filter(None, records)),
        cells=tuple(
            CellView(
                row=row,
                series=series,
                throughputs=tuple(
                    run.row.throughput for run in runs[cell_of(row)] if pd.notna(run.row.throughput)
                ),
                runs=tuple(runs[cell_of(row)]),
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
    read = _distinct(
        (record.data_set.model_copy(update={"times": ""}), record.run.input)
        for record in records
        if record.data_set
    )
    sizes = defaultdict(list)
    for data, form in read:
        name = f"{data.name} ({data.samples:,} {data.counted}"
        sizes[name].append(f"{data.bytes / 1e6:,.1f} MB as {form}")
    return dict(sizes)


def _cropped_by_tensorflow(run: Run) -> bool:
    """Whether images were cropped at random in TensorFlow's way, and not in DALI's."""
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


def _alike(cell: CellView) -> tuple[str, ...]:
    """What a cell and its twin with synthetic input have in common."""
    shared = [name for name in (*IDENTITY, "shape") if name != "suite"]
    return tuple(str(getattr(cell.row, name)) for name in shared)


def _framework(system: str, environment: Environment) -> str:
    """The framework and its version, such as "torch 2.13.0"."""
    known = load_systems().get(system)
    return f"{known.framework if known else system} {environment.framework or ''}".strip()


def _optimizer(record: RunRecord) -> str:
    """Where its optimizer came from, such as ", apex.optimizers", if a system may take several."""
    module = str(record.settings.get("optimizer", "")).rpartition(".")[0]
    return f", {module}" if module else ""


def _distinct(items: Iterable[Item]) -> list[Item]:
    distinct: list[Item] = []
    for item in items:
        if item not in distinct:
            distinct.append(item)
    return distinct
