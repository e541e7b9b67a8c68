"""What cells whose devices share a model are beside data parallel on the same devices."""

from collections.abc import Sequence
from dataclasses import dataclass

from reperf.config import Run, topology_shape
from reperf.printed import ABSENT, gibibytes
from reperf.report.cell_views import CellView
from reperf.systems import load_systems, load_workloads


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
        return self.cell.row.throughput_median / self.data_parallel.row.throughput_median

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
        return " + ".join(f"{one:,}" for one in each)

    @property
    def memory(self) -> str:
        """The most memory of a device of each stage."""
        taken = self.cell.row.stage_memory.split()
        return " + ".join(gibibytes(int(one)) for one in taken) or ABSENT

    @property
    def _run(self) -> Run | None:
        return next((one.record.run for one in self.cell.runs if one.record), None)


def shared_cells(cells: Sequence[CellView]) -> list[SharedCell]:
    """A suite's measured cells that share a model, each behind its data-parallel one.

    Args:
        cells: all of the suite's.
    """
    measured = [cell for cell in cells if cell.measured and not cell.row.source]
    topologies = {cell.row.topology for cell in measured if cell.row.parallel}
    found = []
    for topology in sorted(topologies, key=topology_shape):
        there = [cell for cell in measured if cell.row.topology == topology]
        plain = [cell for cell in there if not cell.row.parallel and not cell.row.servers]
        shared = [cell for cell in there if cell.row.parallel]
        beside = {id(cell): _fastest(plain, _framework(cell)) for cell in shared}
        bases = [one for one in beside.values() if one is not None]
        found += [SharedCell(one, None) for one in plain if any(one is base for base in bases)]
        found += [SharedCell(one, beside[id(one)]) for one in shared]
    return found


def _fastest(cells: Sequence[CellView], framework: str) -> CellView | None:
    own = [cell for cell in cells if _framework(cell) == framework] or cells
    return max(own, key=lambda cell: cell.row.throughput_median, default=None)


def _framework(cell: CellView) -> str:
    known = load_systems().get(cell.row.system)
    return known.framework if known else cell.row.system
