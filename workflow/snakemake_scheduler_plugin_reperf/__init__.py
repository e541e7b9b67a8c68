"""The order of jobs: runs train in their turns, so that a machine's drift favours no system.

Snakemake's own schedulers start jobs of equal priority in no order that a rule could decide.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from snakemake_interface_scheduler_plugins.base import SchedulerBase

__all__ = ["Scheduler"]


class Scheduler(SchedulerBase):
    """Starts whatever fits, in the order of priority, and then of the resource `turn`.

    A job of negative priority waits for all jobs that have a turn, as long as others can run.
    """

    _cores = 0  # the most that were ever free

    def select_jobs(
        self,
        selectable_jobs: Sequence[Any],
        remaining_jobs: Sequence[Any],
        available_resources: Mapping[str, Any],
        input_sizes: dict[Any, int],
    ) -> list[Any]:
        """The jobs to start now; those without a turn come first."""
        free = dict(available_resources)
        cores = free.get("_cores", 0)
        self._cores = max(self._cores, cores)
        selected: list[Any] = []
        for job in sorted(selectable_jobs, key=_place):
            others_run = selected or cores < self._cores
            if job.priority < 0 and others_run and any(map(_turn, remaining_jobs)):
                continue
            needs = {name: job.scheduler_resources.get(name, 0) for name in free}
            if all(needs[name] <= amount for name, amount in free.items()):
                free = {name: amount - needs[name] for name, amount in free.items()}
                selected.append(job)
        return selected


def _place(job: Any) -> tuple[int, int]:  # noqa: ANN401 - Snakemake's
    return -job.priority, _turn(job)


def _turn(job: Any) -> int:  # noqa: ANN401 - Snakemake's
    return job.scheduler_resources.get("turn", 0)
