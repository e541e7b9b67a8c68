"""Snakemake's executor for Slurm, with jobs that run a rule's shell command and nothing around it.

The executor that this one extends starts Snakemake in each job, which starts a second one there
before the command begins. Rules that run as jobs must have a shell command. Their resource
`sbatch_options` may hold any option of sbatch; the other executor's `slurm_extra` refuses --qos,
--constraint, --gres and --mem, among others.
"""

import shlex
from collections.abc import Iterator

from reperf.errors import one_line_errors
from snakemake_executor_plugin_slurm import Executor as SlurmExecutor
from snakemake_executor_plugin_slurm import ExecutorSettings, common_settings
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface

with one_line_errors():  # Snakemake imports this before all else: a workload may be described wrong
    from reperf.training.slurm import check_commands, status_command

__all__ = ["Executor", "ExecutorSettings", "common_settings"]


class Executor(SlurmExecutor):
    """`executor: slurm-shell`, with the other one's options as `slurm-shell-...`."""

    def __post_init__(self) -> None:
        settings = self.workflow.executor_settings
        if settings.array_jobs:
            # In an array, it takes a Snakemake in each job to find that job's command.
            raise WorkflowError(f"slurm-shell-array-jobs: {settings.array_jobs}; allowed: none")
        # No dry run makes an executor; the first thing that a call asks of Slurm it asks here.
        with one_line_errors():
            check_commands()
            settings.status_command = status_command()
        settings.pass_command_as_script = True  # sbatch --wrap takes no command with quotes
        super().__post_init__()

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
