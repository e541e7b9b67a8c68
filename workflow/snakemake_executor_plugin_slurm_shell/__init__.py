"""Snakemake's executor for Slurm, with jobs that run a rule's shell command and nothing around it.

The executor that this one extends starts Snakemake in each job, which starts it once more there
before the command begins. Rules that are jobs must have a shell command.
"""

import shlex

from snakemake_executor_plugin_slurm import Executor as SlurmExecutor
from snakemake_executor_plugin_slurm import ExecutorSettings, common_settings
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface

__all__ = ["Executor", "ExecutorSettings", "common_settings"]


class Executor(SlurmExecutor):
    """`executor: slurm-shell`, with the other one's options as `slurm-shell-...`."""

    def __post_init__(self) -> None:
        settings = self.workflow.executor_settings
        if settings.array_jobs:
            # A Snakemake in each job of an array is what finds the command that is the job's own.
            raise WorkflowError(f"slurm-shell-array-jobs: {settings.array_jobs}; allowed: none")
        settings.pass_command_as_script = True  # sbatch --wrap takes no command with quotes
        super().__post_init__()

    def format_job_exec(self, job: JobExecutorInterface) -> str:
        """The line that a job's script consists of."""
        return f"exec bash -euo pipefail -c {shlex.quote(job.shellcmd)}"
