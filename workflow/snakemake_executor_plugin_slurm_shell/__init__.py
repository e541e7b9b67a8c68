"""Snakemake's executor for Slurm, with jobs that run a rule's shell command and nothing around it.

The executor that this one extends starts Snakemake in each job, which starts a second one there
before the command begins. Rules that run as jobs must have a shell command. Their resource
`sbatch_options` may hold any option of sbatch; the other executor's `slurm_extra` refuses --qos,
--constraint, --gres and --mem, among others.

What Slurm knows is told: why jobs wait, and how it ended one, in the run's record, too.
"""

import shlex
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from reperf.errors import ReperfError, one_line_errors
from reperf.text import printable
from snakemake_executor_plugin_slurm import Executor as SlurmExecutor
from snakemake_executor_plugin_slurm import ExecutorSettings as SlurmSettings
from snakemake_executor_plugin_slurm import common_settings
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface

with one_line_errors():  # Snakemake imports this before all else: a workload may be described wrong
    from reperf.layout import RUN_RECORD
    from reperf.training.slurm import (
        check_commands,
        end_of_job,
        preempted,
        reasons_of_waiting,
        status_command,
        trains,
    )
    from reperf.training.tries import tell_of_slurm

__all__ = ["Executor", "ExecutorSettings", "common_settings"]


@dataclass
class ExecutorSettings(SlurmSettings):
    """The other executor's, and one more."""

    seconds_to_wait: int = field(
        default=60,
        metadata={
            "help": "how long jobs may wait in Slurm's queue until it is told what Slurm says",
            "env_var": False,
            "required": False,
        },
    )


class Executor(SlurmExecutor):
    """`executor: slurm-shell`, with the other one's options as `slurm-shell-...`."""

    # Jobs are looked at in a thread of its own, which starts before `__post_init__`.
    _first_seen: Mapping[str, float] = MappingProxyType({})
    _told: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        settings = self.workflow.executor_settings
        if settings.array_jobs:
            # In an array, it takes a Snakemake in each job to find that job's command.
            raise WorkflowError(f"slurm-shell-array-jobs: {settings.array_jobs}; allowed: none")
        # No dry run makes an executor; the first thing that a call asks of Slurm it asks here.
        with one_line_errors():
            if trains(self.workflow.dag):  # nothing else becomes a job
                check_commands()
                settings.status_command = status_command()
        settings.pass_command_as_script = True  # sbatch --wrap takes no command with quotes
        super().__post_init__()
        self._preemption_warning = True  # given; it says that Slurm will resume the job

    async def check_active_jobs(
        self, active_jobs: Sequence[SubmittedJobInfo]
    ) -> AsyncIterator[SubmittedJobInfo]:
        """The jobs that have not ended yet; tells why some have waited for long.

        For the other executor, a job that Slurm has preempted has not ended: it waits for ever.
        """
        names = [one.external_jobid for one in active_jobs]
        self._tell_why_jobs_wait(names)
        ended: Collection[str] = ()
        with suppress(ReperfError):  # it is busy: another look follows
            ended = preempted(names) if names else ()
        async for one in super().check_active_jobs(active_jobs):
            if one.external_jobid in ended:
                self.report_job_error(one)
            else:
                yield one

    def _tell_why_jobs_wait(self, jobs: Sequence[str]) -> None:
        now = time.monotonic()
        self._first_seen = {job: self._first_seen.get(job, now) for job in jobs}
        longest = self.workflow.executor_settings.seconds_to_wait
        old = {job for job, since in self._first_seen.items() if now - since >= longest}
        with suppress(ReperfError):  # it is busy: another look follows
            reasons = reasons_of_waiting(old) if old else {}
            if set(reasons) - self._told:
                count = sum(reasons.values())
                jobs_have = "a job has" if count == 1 else f"{count} jobs have"
                said = ", ".join(f"{why} ({times})" for why, times in sorted(reasons.items()))
                self.logger.warning(
                    f"{jobs_have} waited for more than {longest} s; Slurm says: {printable(said)}"
                )
            self._told = frozenset(reasons)

    def report_job_error(
        self,
        job_info: SubmittedJobInfo,
        msg: str | None = None,
        **kwargs: Any,  # noqa: ANN401 - Snakemake's
    ) -> None:
        """Tell how Slurm ended a job, if it was Slurm, and put that into the run's record."""
        if job := job_info.external_jobid:
            msg = None  # it says what Snakemake's users could set
            with suppress(ReperfError):
                end = end_of_job(job)
                if end.is_news:
                    msg = end.text
                    for file in map(Path, job_info.job.output):
                        if file.name == RUN_RECORD:
                            tell_of_slurm(file.parent, job, end)
        super().report_job_error(job_info, msg, **kwargs)

    def print_job_error(
        self,
        job_info: SubmittedJobInfo,
        msg: str | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        """Without the advice that the other executor adds to each message."""
        job_info.job.log_error(msg, external_jobid=job_info.external_jobid, **kwargs)

    def get_account_arg(self, job: JobExecutorInterface) -> Iterator[str]:
        """Without an account, the user's default one; the other executor guesses."""
        yield from super().get_account_arg(job) if job.resources.get("slurm_account") else [""]

    async def sleep(self) -> None:
        """Wait until jobs are looked at again: ever longer, as the other executor has it, but no
        longer than --seconds-between-status-checks.
        """
        longest = self.workflow.remote_execution_settings.seconds_between_status_checks
        self.next_seconds_between_status_checks = min(
            self.next_seconds_between_status_checks, longest
        )
        await super().sleep()

    def format_job_exec(self, job: JobExecutorInterface) -> str:
        """A job's script."""
        options = job.resources.get("sbatch_options", "")
        return f"#SBATCH {options}\nexec bash -euo pipefail -c {shlex.quote(job.shellcmd)}"
