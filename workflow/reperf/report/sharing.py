"""Cells whose devices share a model, compared with data parallel on the same devices."""

from collections.abc import Sequence
from dataclasses import dataclass

from reperf.config import Run, topology_shape
from reperf.number_format import ABSENT, gibibytes
from reperf.report.cell_views import CellView
from reperf.systems import load_systems
from reperf.systems.workloads import load_workloads


@dataclass(frozen=True)
class SharedCell:
    """A measured cell, and the data-parallel one that stands beside it."""

    cell: CellView
    data_parallel: CellView | None
    """On the same topology: the fastest of the same framework, or else of all; None without one."""

    @property
    def ratio(self) -> float | None:
        """Its median over that of data parallel."""
        if self.data_parallel is None:
            return None
        return float(self.cell.row.throughput_median / self.data_parallel.row.throughput_median)

    @property
    def updates(self) -> str:
        """How often each stage updates its weights in an epoch of whole global batches."""
        run, samples = self._run, load_workloads()[self.cell.row.workload].epoch
        if run is None or samples is None:
            return ABSENT
        batches = samples // run.global_batch
        pipeline = run.parallel.pipeline if run.parallel else ()
        each = [batches]
        if pipeline and load_systems()[run.system].pipelines.updates == "after each batch":
            each = [batches * pipeline[0] // replicas for replicas in pipeline]
        return " + ".join(f"{updates:,}" for updates in each)

    @property
    def memory(self) -> str:
        """The most memory of a device of each stage."""
        stages = self.cell.row.stage_memory.split()
        return " + ".join(gibibytes(int(stage)) for stage in stages) or ABSENT

    @property
    def _run(self) -> Run | None:
        return next((run.record.run for run in self.cell.runs if run.record), None)


def shared_cells(cells: Sequence[CellView]) -> list[SharedCell]:
    """A suite's measured cells that share a model, each after its data-parallel cell."""
    measured = [cell for cell in cells if cell.measured and not cell.row.source]
    topologies = {cell.row.topology for cell in measured if cell.row.parallel}
    rows = []
    for topology in sorted(topologies, key=topology_shape):
        there = [cell for cell in measured if cell.row.topology == topology]
        plain = [cell for cell in there if not cell.row.parallel and not cell.row.servers]
        shared = [cell for cell in there if cell.row.parallel]
        beside = {id(cell): _fastest(plain, _framework(cell)) for cell in shared}
        bases = [base for base in beside.values() if base is not None]
        rows += [SharedCell(cell, None) for cell in plain if any(cell is base for base in bases)]
        rows += [SharedCell(cell, beside[id(cell)]) for cell in shared]
    return rows


def _fastest(cells: Sequence[CellView], framework: str) -> CellView | None:
    alike = [cell for cell in cells if _framework(cell) == framework] or cells
    return max(alike, key=lambda cell: cell.row.throughput_median, default=None)


def _framework(cell: CellView) -> str:
    known = load_systems().get(cell.row.system)
    return known.framework if known else cell.row.system
