"""A run's record for tests of this folder."""

from reperf.config import Run, load_report
from reperf.host import Host
from reperf.records.run_record import RunRecord

from tests.helpers import runs
from tests.helpers.small_benchmark import SMALL

HOST = Host(
    hostname="here", cpu="AMD EPYC 7B13", cores=2, memory_bytes=1, os="Debian", kernel="6.1"
)


def small_run(topology: str = "1n1g", **changes: object) -> Run:
    """A run of the small benchmark, with some fields changed."""
    run = load_report(SMALL).run("small", "pytorch", topology, 1)
    return run.model_copy(update=changes)


def record_of(run: Run, **changes: object) -> RunRecord:
    """The record of a run that ended well on HOST, but for some fields."""
    return runs.record_of(run, **{"host": HOST} | changes)
