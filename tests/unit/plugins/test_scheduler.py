"""The order in which jobs start."""

import logging
from types import SimpleNamespace

import pytest
from snakemake_interface_scheduler_plugins.registry import SchedulerPluginRegistry
from snakemake_scheduler_plugin_reperf import Scheduler


def job(name: str, priority: int = 0, **resources: int) -> SimpleNamespace:
    return SimpleNamespace(name=name, priority=priority, scheduler_resources=resources)


@pytest.mark.parametrize(
    ("jobs", "free", "started"),
    [
        # Runs that need the whole machine, one after the other; what has no turn is first.
        ([job("b", _cores=2, turn=2), job("a", _cores=2, turn=1)], {"_cores": 2}, "a"),
        ([job("a", _cores=1, turn=1), job("b", _cores=1)], {"_cores": 1}, "b"),
        ([job("a", turn=1), job("b", priority=1, turn=2)], {}, "ba"),
        # What does not fit waits, and does not keep others from starting.
        ([job("a", _cores=2, turn=1), job("b", _cores=1, turn=2)], {"_cores": 1}, "b"),
        ([job("c", turn=3, mem=1), job("a", turn=1), job("b", turn=2, mem=2)], {"mem": 2}, "ab"),
        ([job("a", _cores=3)], {"_cores": 2}, ""),
        # What can wait does not keep a run waiting, and starts if nothing else can.
        ([job("b", priority=-1), job("a", turn=1)], {"_cores": 2}, "a"),
        ([job("b", priority=-1), job("a")], {"_cores": 2}, "ab"),
        ([job("b", priority=-1), job("a", _cores=3, turn=1)], {"_cores": 2}, "b"),
    ],
)
def test_what_fits_starts_in_turns(jobs, free, started):
    assert SchedulerPluginRegistry().is_installed("reperf")  # Snakemake finds it
    selected = Scheduler(None, None, logging.getLogger()).select_jobs(jobs, jobs, free, {})
    assert "".join(one.name for one in selected) == started
