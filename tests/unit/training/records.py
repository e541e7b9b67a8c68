"""A run's record for tests of this folder."""

from reperf.config import Run, load_report
from reperf.training.record import Environment, Host, RunRecord

from tests.helpers.small_benchmark import SMALL

HOST = Host(
    hostname="here", cpu="AMD EPYC 7B13", cores=2, memory_bytes=1, os="Debian", kernel="6.1"
)


def small_run(topology: str = "1n1g", **changes: object) -> Run:
    """A run of the small benchmark, with some fields changed."""
    run = load_report(SMALL).run("small", "pytorch", topology, 1)
    return run.model_copy(update=changes)


def record_of(run: Run, **changes: object) -> RunRecord:
    """The record of a run that ended well, but for some fields."""
    ended = {"status": "ok", "attempt": 1, "command": (), "variables": {}, "host": HOST}
    built = Environment(lock="", lock_sha256="", python="3.12", packages={})
    times = {"started": "", "ended": "", "seconds": 1, "exit_code": 0, "log_sha256": ""}
    of = {"run": run, "environment": built, "git_commit": None, "git_dirty": None}
    return RunRecord(**{**ended, **times, **of, **changes})
