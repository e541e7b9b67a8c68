"""What a report says, gathered once for both of its forms.

Everything comes from the configuration, the run records, the two tables and the published facts.
Neither the clock nor this machine has a say: equal inputs give equal reports.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from reperf.config import Report, Run, Suite, Window
from reperf.config.words import LARGEST
from reperf.doctor.build_table import HEADINGS, BuildRow, build_rows
from reperf.doctor.diagnosis import Diagnosis
from reperf.drawing.labels import series_of, system_title, title_of, unit_of
from reperf.layout import ALL_MEASUREMENTS, ALL_SUMMARY, FIGURE_KINDS
from reperf.logs.facts import called
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
from reperf.printed import ABSENT, count, day_and_time, memory, number, percent
from reperf.published import (
    PublishedTable,
    epochs_beside,
    load_tables,
    published_for,
    published_without_size,
)
from reperf.published.discrepancies import Discrepancy, DiscrepancyKind, discrepancies
from reperf.report.cell_views import BESIDE, BOUND_BY_LOADER, CellView, Row, RunView
from reperf.report.sharing import SharedCell, shared_cells
from reperf.systems import load_systems, load_workloads
from reperf.systems.workloads import Flops
from reperf.training.key import short
from reperf.training.record import Environment, Host, RunRecord

INPUTS = {
    "records": "Real samples from record files",
    "folder": "Real samples from the image folder",
    "synthetic": "Synthetic samples, so that no loader is in the way",
}
DEVICES = {"cpu": "the CPU", "cuda": "GPUs"}
"""What a suite that says its own trains on."""
CELL_KEY = [
    *("suite", "system", "variant", "parallel", "servers", "batch_size_per_device"),
    *("topology", "source"),
]
RUN_KEY = [*CELL_KEY, "repeat"]


class Further(NamedTuple):
    """A column that tables show on demand."""

    name: str
    heading: str
    said: Callable[[Row], str]
    """What it says of a row of summary.csv; a dash where that holds nothing."""


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

    @property
    def too_few(self) -> str:
        """How many repeats could tell all of its cells apart, if theirs never do; "" if they may.

        A hint, and no promise: cells that overlap stay unresolved.
        """
        fewest = min(cell.row.n for cell in (self.fastest, *(one.cell for one in self.others)))
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

    name: str
    title: str
    unit: str
    conditions: str
    cells: tuple[CellView, ...]
    unplaced: tuple[Row, ...]
    """The logs that are in no cell: their rows of measurements.csv."""
    without_size: tuple[PublishedTable, ...] = ()
    """Published tables of the same workload and precision that name no batch size."""
    published_epochs: pd.DataFrame | None = None
    """Of the same training on the same topologies; None where nothing published is shown."""

    @property
    def loose_tables(self) -> list[LooseTable]:
        """What such tables print of the systems and topologies that were measured here."""
        measured = {
            (cell.row.system, cell.row.variant, cell.row.topology): cell for cell in self.measured
        }
        found = []
        for table in self.without_size:
            rows = []
            for row in table.cells.itertuples():
                # A node of which only the number is printed has one trainer.
                topology = row.topology + ("1g" if pd.isna(row.devices_per_node) else "")
                if own := measured.get((row.system, row.variant, topology)):
                    rows.append((own, row))
            if rows:
                found.append(LooseTable(table, tuple(rows)))
        return found

    @property
    def shown(self) -> bool:
        """Whether there is anything to say about it, besides what cannot run."""
        return bool(self.tried or self.unplaced)

    @property
    def baseline(self) -> str | None:
        """What all speedups are against; None if series differ, or none has a speedup."""
        found = {cell.row.baseline for cell in self.cells if pd.notna(cell.row.speedup)}
        return found.pop() if len(found) == 1 else None

    @property
    def figures(self) -> tuple[str, ...]:
        """The kinds of figures that show something: where no series scales, throughput alone."""
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
        """What the workload counts besides the suite's unit, if a cell's logs count it."""
        found = (cell.row.also_unit for cell in self.cells if pd.notna(cell.row.also_median))
        return next(found, None)

    @property
    def further(self) -> list[Further]:
        """The columns on demand of which some cell has something to say."""
        rows = [cell.row for cell in self.measured]
        return [column for column in FURTHER if any(column.said(row) != ABSENT for row in rows)]

    @property
    def cautions(self) -> list[str]:
        """What to know about cells whose numbers are not what they seem."""
        said = []
        if any(cell.bound_by_loader for cell in self.cells):
            said.append(
                f"Bound by its loader: for more than {100 * BOUND_BY_LOADER:g} % of its time "
                "training waited for the next batch. The number says how fast samples were read "
                "and decoded; more loader threads, faster storage or synthetic input show how "
                "fast the system trains"
            )
        if self.crops_differ:
            said.append(
                "Crops differ: TensorFlow draws smaller ones, which leave less to decode. Of "
                "500 x 375 pixels they cover 37 % on average, those of DALI and of the reader "
                "of PyTorch and PaddlePaddle 44 %"
            )
        said += self._of_chance
        for cell in self.cells:
            if cell.differs_in:
                said.append(
                    f"Not one thing: the runs of {cell.series} on {cell.row.topology} differ in "
                    f"{', '.join(cell.differs_in)}, so that the cell has no key"
                )
            if run := cell.stray:
                said.append(
                    f"Starts elsewhere: without dropout and before any training, the loss of "
                    f"{cell.series} on {cell.row.topology} is {run.row.start_loss:.6g}, "
                    f"that of most others on the same batch {run.usual_start:.6g}. It trains "
                    "another model, or on other data"
                )
        return said

    @property
    def _of_chance(self) -> list[str]:
        """What to know about numbers that something else, or chance, has part in."""
        said, measured = [], self.measured
        if any(cell.beside for cell in measured):
            said.append(
                f"Beside other work: other processes took more than {100 * BESIDE:g} % of the "
                "CPUs' time while a run trained, or were on its GPUs before. On a machine of its "
                "own the cell would be faster"
            )
        if any(cell.scattered for cell in measured):
            said.append(
                "Scattered: single repeats give speedups of which the greatest is more than "
                f"{100 * (WIDE - 1):g} % above the least. Such a speedup, and its efficiency, say "
                "nothing: a quiet machine or a longer window may help"
            )
        if any(pd.notna(cell.row.shared_cpus) for cell in measured):
            said.append(
                "Shared CPUs: the machine has too few for a topology, so its devices ran on all of "
                "them together. That says nothing about how training scales: these cells have no "
                "speedup, no efficiency and no median a device. Compare them with cells of the "
                "same topology alone"
            )
        least = repeats_for_interval()
        if any(1 < cell.row.n < least for cell in measured):
            said.append(
                f"An interval of the median takes {least} repeats: with fewer there is none that "
                "covers it with 95 %"
            )
        return said

    @property
    def crops_differ(self) -> bool:
        """Whether TensorFlow cut the images of some measured cells, and others those of others."""
        runs = [run for cell in self.measured for run in cell.runs]
        asked = [run.record.run for run in runs if run.record]
        return len({_cut_by_tensorflow(run) for run in asked if _reads_images(run)}) > 1

    @property
    def by_series(self) -> dict[str, list[CellView]]:
        """The cells of the table, by series."""
        found = defaultdict(list)
        for cell in self.tried:
            found[cell.series].append(cell)
        return dict(found)

    @property
    def runs(self) -> list[RunView]:
        return [run for cell in self.cells for run in cell.runs]

    @property
    def compared(self) -> list[CellView]:
        """The measured cells that have a published counterpart."""
        return [cell for cell in self.measured if cell.published]

    @property
    def shared(self) -> list[SharedCell]:
        """Its cells whose devices share a model, and the data-parallel ones beside them."""
        return shared_cells(self.cells)

    @property
    def epochs_of_others(self) -> list[Row]:
        """The published epochs that stand beside its own; none where no devices share a model."""
        if self.published_epochs is None or not self.shared:
            return []
        return list(self.published_epochs.itertuples())

    @property
    def rankings(self) -> list[Ranking]:
        """One ranking per topology that has more than one cell to compare."""
        measured = defaultdict(list)
        for cell in self.measured:
            measured[cell.row.topology].append(cell)
        return [_ranking(name, cells) for name, cells in measured.items() if len(cells) > 1]

    @property
    def fastest(self) -> CellView | None:
        """The cell with the highest throughput."""
        return max(self.measured, key=lambda cell: cell.row.throughput_median, default=None)


@dataclass(frozen=True)
class Timing:
    """How long the runs of some suites are, and which of their iterations are measured.

    Attributes:
        iterations: how many each run trains; None for logs of others.
        window: by which they are measured.
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


@dataclass(frozen=True)
class Setup:
    """What one system trained in."""

    system: str
    framework: str
    environment: Environment

    @property
    def build(self) -> str:
        """What its framework came from: a lock's file, or an image's reference."""
        image = self.environment.image
        return image.reference if image else self.environment.lock

    @property
    def engine(self) -> str:
        """What ran the image, with its version; "" for a lock."""
        image = self.environment.image
        return f"{image.engine} {image.engine_version}" if image else ""

    @property
    def sha256(self) -> str:
        """Of the lock or of the image."""
        image = self.environment.image
        return image.digest.removeprefix("sha256:") if image else self.environment.lock_sha256


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
    build_headings = HEADINGS
    repeats_for_interval = repeats_for_interval()
    beside_percent = percent(BESIDE)
    loosely_note = (
        "The same workload, precision and topology, of a document that names no batch size, on "
        "other machines and in other versions: beside, not compared."
    )

    @property
    def build_rows(self) -> list[BuildRow]:
        """What the doctor saw of each build."""
        return build_rows(self.diagnosis) if self.diagnosis else []

    @property
    def searches(self) -> bool:
        """Whether some batch size is the largest that trains."""
        return any(record.largest for record in self.records)

    @property
    def together(self) -> str:
        """How trainers that keep their own time were measured; "" if there were none."""
        methods = {run.row.method for suite in self.suites for run in suite.runs}
        return self._together_method if SUMMED in methods else ""

    _together_method = (
        "Where each trainer keeps its own time, as asynchronous ones beside parameter servers do, "
        "each was measured so by its own lines, and the throughput is the sum of theirs. They "
        "started together, and were measured from when the last had warmed up to when the last had "
        "made as many iterations as were to be measured: the others have made more by then. They "
        f"count only if their windows overlap by {LEAST_OVERLAP:.0%} of the longest. None has the "
        "others' last updates, so their last weights were not compared."
    )

    search_method = (
        "The largest batch size was found by trials before any run: short runs of the same trainer "
        "on the same input, on the suite's topology with the most devices. Two small ones "
        "predicted it, for memory grows with the batch in a straight line, and further ones "
        "confirmed it: it trained, and the next multiple did not."
    )

    @property
    def cells(self) -> list[CellView]:
        return [cell for suite in self.suites for cell in suite.cells]

    @property
    def tried(self) -> list[CellView]:
        return [cell for suite in self.suites for cell in suite.tried]

    @property
    def not_measured(self) -> list[tuple[SuiteView, CellView]]:
        """The cells that lack the number of some run, each with its suite."""
        return [
            (suite, cell)
            for suite in self.suites
            for cell in suite.tried
            if cell.row.status != "ok"
        ]

    @property
    def bound_by_loader(self) -> list[CellView]:
        """The cells whose numbers are those of their loaders."""
        return [cell for cell in self.cells if cell.bound_by_loader]

    @property
    def has_load(self) -> bool:
        """Whether some run says what else its machine did."""
        return any(record.load for record in self.records)

    @property
    def flops(self) -> dict[str, Flops]:
        """What a sample costs of the workloads with a utilisation, by their titles."""
        shown = {cell.row.workload for cell in self.cells if pd.notna(cell.row.flop_utilisation)}
        known = [load_workloads()[workload] for workload in sorted(shown)]
        return {workload.title: workload.flops for workload in known if workload.flops}

    @property
    def beside(self) -> list[CellView]:
        """The cells that were measured beside other work."""
        return [cell for cell in self.cells if cell.measured and cell.beside]

    of_epochs = (
        "An epoch is of whole global batches, as PipeDream counts it. Rows train differently: a "
        "stage that updates after each batch changes its weights more often, by gradients from "
        "older weights of the stages before it. The ratio says nothing of what a model has learned"
    )
    of_others_epochs = (
        "What is published is from another machine, and its epoch as long as the row says; else it "
        "is ImageNet's. Its memory is what the system showed of the device that took most"
    )

    @property
    def further(self) -> list[Further]:
        """The columns on demand of some suite's table."""
        return [column for column in FURTHER if any(column in one.further for one in self.suites)]

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
        """How many runs were trained here, and how many logs others made."""
        placed = sum(run.row.source != "" for suite in self.suites for run in suite.runs)
        others = placed + sum(len(suite.unplaced) for suite in self.suites)
        told = [count(len(self.records), "training run")] if self.records or not others else []
        return " and ".join(told + ([f"{count(others, 'log')} of others"] if others else []))

    @property
    def statuses(self) -> Counter[str]:
        """How many of the tried cells ended how."""
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
        """What a device was."""
        threads = count(self.config.threads_per_device, "CPU thread")
        kinds = {"cuda": "a GPU", "cpu": f"a training process with {threads}"}
        found = dict.fromkeys(kinds[record.run.device] for record in self.records)
        return " or, in suites on the CPU, ".join(sorted(found))

    @property
    def timings(self) -> list[Timing]:
        """One for all suites that do not differ; published methods have windows of their own."""
        suites: dict[tuple[int | None, Window], dict[str, None]] = defaultdict(dict)
        for suite in self.config.suites:
            if suite.entries:
                suites[suite.iterations, suite.window][suite.name] = None
            for source in suite.sources:
                window = source.window or suite.window
                known = suite.name in suites.get((suite.iterations, window), ())
                if source.method == "window" and not known:
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
    """Bring together what the report says.

    Args:
        config: the configuration.
        records: of the runs; those that the measurements do not name are ignored.
        measurements: as read_measurements gives them.
        summary: as read_summary gives it.
        diagnosis: what `reperf doctor` found, if it was run.
        published: whether the numbers of published reports stand beside the measured.
        tables: the files that hold the numbers, for the reader.
    """
    known = {_key_of(record): record for record in records}
    shared = [suite.name for suite in config.suites if not _reads_images(suite)]
    usual = initial_loss_outliers(measurements[measurements["suite"].isin(shared)])
    runs = defaultdict(list)
    for row in measurements.itertuples():
        record = known.get(_key(row, RUN_KEY))
        runs[_key(row, CELL_KEY)].append(RunView(row, record, usual.get(row.Index)))
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
    runs: Mapping,
    unplaced: pd.DataFrame,
    *,
    published: bool,
) -> SuiteView:
    unit = unit_of(cells)
    # Published reports trained on real samples, as usual.
    beside = published and suite.input != "synthetic" and _is_usual(suite)
    others = _published(suite, cells, unit) if beside else {}
    own = [run.record for row in cells.itertuples() for run in runs[_key(row, CELL_KEY)]]
    return SuiteView(
        name=suite.name,
        title=title_of(cells if len(cells) else unplaced),
        unit=unit,
        conditions=_conditions(suite, filter(None, own)),
        cells=tuple(
            CellView(
                row=row,
                series=series,
                runs=tuple(runs[_key(row, CELL_KEY)]),
                published=tuple(others.get(_published_key(row), ())),
            )
            for row, series in zip(cells.itertuples(), series_of(cells), strict=True)
        ),
        unplaced=tuple(unplaced.itertuples()),
        without_size=published_without_size(suite.workload, suite.precision) if beside else (),
        published_epochs=epochs_beside(cells) if published and len(cells) else None,
    )


def _ranking(topology: str, cells: list[CellView]) -> Ranking:
    fastest, *others = sorted(cells, key=lambda cell: -cell.row.throughput_median)
    verdicts = compare([cell.throughputs for cell in others], fastest.throughputs)
    return Ranking(
        topology,
        fastest,
        tuple(
            Rival(cell, cell.row.throughput_median / fastest.row.throughput_median, verdict)
            for cell, (verdict, _) in zip(others, verdicts, strict=True)
        ),
    )


def _conditions(suite: Suite, records: Iterable[RunRecord]) -> str:
    """What a suite's title leaves out.

    Args:
        records: of its runs.
    """
    sources = ", ".join(source.id for source in suite.sources)
    shape = "".join(f", {called(name)} {size}" for name, size in suite.shape.items())
    if not suite.entries:
        # The shape of the logs is unknown unless the suite asks for one.
        return f"Logs from {sources}{'' if _is_usual(suite) else shape}"
    beside = f"; beside them logs from {sources}" if sources else ""
    repeats = f"{count(suite.repeats, 'repeat')} per cell"
    device = f" on {DEVICES[suite.device]}" if suite.device else ""
    return (
        f"{INPUTS[suite.input]}{_sets(records)}{shape}{device}; {repeats}{_searched(suite)}{beside}"
    )


def _sets(records: Iterable[RunRecord]) -> str:
    """The data sets that runs have read; the bytes of one differ from format to format."""
    read = _distinct((record.data_set, record.run.input) for record in records if record.data_set)
    sizes = defaultdict(list)
    for found, form in read:
        named = f"{found.name} ({found.samples:,} {found.counted}"
        sizes[named].append(f"{found.bytes / 1e6:,.1f} MB as {form}")
    told = [f"{named}; {', '.join(sorted(each))})" for named, each in sizes.items()]
    return f" of {' and '.join(told)}" if told else ""


def _searched(suite: Suite) -> str:
    """Which of a suite's batch sizes are the largest that train."""
    sizes = {entry.id: entry.batch_size or suite.batch_size for entry in suite.entries}
    searched = [name for name, size in sizes.items() if size == LARGEST]
    if not searched:
        return ""
    whose = "" if len(searched) == len(sizes) else f" of {', '.join(searched)}"
    return f"; the batch size{whose} is the largest multiple of {suite.batch_multiple} that trains"


def _reads_images(asked: Suite | Run) -> bool:
    """Whether it reads images, which each system crops at random in its own way."""
    return asked.input != "synthetic" and load_workloads()[asked.workload].data == "images"


def _cut_by_tensorflow(run: Run) -> bool:
    system = load_systems().get(run.system)
    by_dali = "dali" in (run.variant or "").split("+")
    return system is not None and system.framework == "tensorflow" and not by_dali


def _is_usual(suite: Suite) -> bool:
    """Whether a suite's shape is its workload's usual one."""
    return suite.shape == load_workloads()[suite.workload].default_shape


def _published(suite: Suite, cells: pd.DataFrame, unit: str) -> Mapping[tuple, list[Row]]:
    """The published cells that may stand beside a suite's, by what they must have in common."""
    found: dict[tuple, list[Row]] = defaultdict(list)
    for size in cells["batch_size_per_device"].dropna().unique():
        for row in published_for(suite.workload, suite.precision, size).itertuples():
            if row.unit == unit:
                found[_published_key(row)].append(row)
    return found


def _published_key(row: Row) -> tuple:
    size = row.batch_size_per_device
    return row.system, row.variant, None if pd.isna(size) else int(size), row.topology


def _key(row: Row, columns: list[str]) -> tuple[str, ...]:
    return tuple(str(getattr(row, column)) for column in columns)


def _key_of(record: RunRecord) -> tuple[str, ...]:
    run = record.run
    named = {name: value or "" for name, value in run.identity.items()}
    named |= {"source": "", "repeat": run.repeat}
    return tuple(str(named[column]) for column in RUN_KEY)


def _framework(system: str, environment: Environment) -> str:
    """The framework and its version, such as "torch 2.13.0"."""
    known = load_systems().get(system)
    name = known.framework if known else system
    # Records before version 4 know packages alone; the first of a lock is the framework's.
    package = known.host.locks["cpu"].packages[0] if known else system
    version = environment.framework or environment.packages.get(package)
    return f"{name} {version or ''}".strip()


def _distinct(items: Iterable) -> list:
    found = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
