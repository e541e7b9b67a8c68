"""Cells of a report: their rows, their runs, and what to know before reading their numbers."""

from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import pandas as pd

from reperf.layout import RUN_RECORD
from reperf.measuring.statistics import WIDE
from reperf.printed import ABSENT
from reperf.records.cell_key import differing
from reperf.records.run_record import RunRecord

Row = Any
"""A row of a table, as pandas' itertuples gives it."""

BOUND_BY_LOADER = 0.05
"""The share of its time beyond which a cell that waited for data was bound by its loader."""
BESIDE = 0.05
"""The share of the CPUs' time beyond which a cell was measured beside other work."""


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
class CellView:
    """One row of summary.csv, its runs, and what was published for the same cell."""

    row: Row
    series: str
    runs: tuple[RunView, ...]
    published: tuple[Row, ...]

    @property
    def measured(self) -> bool:
        return bool(pd.notna(self.row.throughput_median))

    @property
    def bound_by_loader(self) -> bool:
        """Whether training waited for data for more than a trifle of its time."""
        waited = pd.notna(self.row.waited) and self.row.waited > BOUND_BY_LOADER
        return bool(self.measured and waited)

    @property
    def beside(self) -> bool:
        """Whether other work took more than a trifle of its machine while it was measured."""
        loaded = pd.notna(self.row.load) and self.row.load > BESIDE
        on_gpus = pd.notna(self.row.gpu_processes) and self.row.gpu_processes > 0
        return bool(self.measured and (loaded or on_gpus))

    @property
    def scattered(self) -> bool:
        """Whether its repeats, or the baseline's, scatter so much that its speedup says nothing."""
        row = self.row
        return bool(pd.notna(row.speedup_low) and row.speedup_high > WIDE * row.speedup_low)

    @property
    def marks(self) -> list[str]:
        """What to know before reading its number, in a word or two each."""
        marks = {
            "starts elsewhere": self.stray,
            "beside other work": self.beside,
            "scattered": self.scattered,
            "bound by loader": self.bound_by_loader,
        }
        return [mark for mark, holds in marks.items() if holds]

    @property
    def differs_in(self) -> list[str]:
        """Settings in which its runs differ; if there are any, the runs are not repeats."""
        return differing({run.row.key for run in self.runs if run.row.key})

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

    @property
    def throughputs(self) -> list[float]:
        """The throughputs of the runs that gave one."""
        return [run.row.throughput for run in self.runs if pd.notna(run.row.throughput)]
