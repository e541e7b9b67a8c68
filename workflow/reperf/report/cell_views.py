"""Cells of a report: their rows, their runs, and what to know before reading their numbers."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import PurePath

from reperf.drawing.panels import Entry, Row
from reperf.layout import RUN_RECORD
from reperf.measuring.marks import STRAY, THROTTLED
from reperf.number_format import ABSENT
from reperf.records.cell_key import VARIABLES, differing
from reperf.records.run_record import RunRecord
from reperf.records.shell import differing_variables


@dataclass(frozen=True)
class RunView:
    """One run: its row of measurements.csv and its record, if there is one."""

    row: Row
    record: RunRecord | None
    usual_start: float | None = None
    """What most other systems' loss on the same first batch is, if this run's is another."""

    @property
    def record_path(self) -> str:
        return str(PurePath(self.row.log).with_name(RUN_RECORD))


@dataclass(frozen=True)
class CellView(Entry):
    """One row of summary.csv, its runs, and what was published for the same cell."""

    runs: tuple[RunView, ...]
    published: tuple[Row, ...]
    slow_nodes: tuple[str, ...] = ()  # the slow nodes on which some of its runs were

    @property
    def marks(self) -> list[str]:
        """What to know before reading its number, in a few words each; the worst first."""
        slow = [f"on slow {name}" for name in self.slow_nodes]
        return [STRAY] * bool(self.stray) + slow + super().marks

    @property
    def differs_in(self) -> list[str]:
        """Settings in which its runs differ; if there are any, the runs are not repeats."""
        runs = [run for run in self.runs if run.row.status == "ok"]
        parts = differing({run.row.key for run in runs if run.row.key})
        records = [run.record for run in runs if run.record]
        names = differing_variables(records)
        hosts = [record.host for record in records]
        others: dict[str, Collection[object]] = {
            "when the images of their folder were written": {
                record.data_set.times for record in records if record.data_set
            },
            "how many CPUs they may use": {host.cores for host in hosts},
            "operating system": {(host.os, host.kernel) for host in hosts},
            "GPU driver": {host.driver for host in hosts},
        }
        told = [what for what, values in others.items() if len(values) > 1]
        return [part for part in parts if part != VARIABLES or not names] + names + told

    @property
    def started(self) -> list[str]:
        """When its measured runs started, in order; logs of others do not say."""
        return sorted(run.row.date for run in self.runs if run.row.status == "ok" and run.row.date)

    @property
    def trained_again(self) -> list[RunView]:
        """The measured runs that had ended well before, and that somebody had trained again."""
        runs = (run for run in self.runs if run.row.status == "ok")
        return [run for run in runs if run.record and run.record.ended_well_before]

    @property
    def throttled(self) -> list[RunView]:
        """The measured runs whose devices something held back."""
        runs = (run for run in self.runs if run.row.status == "ok")
        return [run for run in runs if run.row.throttled > THROTTLED]  # not a number: unknown

    @property
    def stray(self) -> RunView | None:
        """The first run that started from another loss than most others; None without one."""
        return next((run for run in self.runs if run.usual_start is not None), None)

    @property
    def computed_in(self) -> str:
        """The data types of the runs that were recorded here; logs of others do not name them."""
        records = [run.record for run in self.runs if run.record]
        types = [str(record.computed_in) for record in records if record.computed_in]
        return "; ".join(dict.fromkeys(types)) or ABSENT

    @property
    def least(self) -> float | None:
        """The least throughput of the runs; None for a single run, which has no spread."""
        return self.row.throughput_min if self.row.n > 1 else None

    @property
    def greatest(self) -> float | None:
        """The greatest throughput, likewise."""
        return self.row.throughput_max if self.row.n > 1 else None
