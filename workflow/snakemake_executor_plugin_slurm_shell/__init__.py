"""Snakemake's executor for Slurm, with jobs that run a rule's shell command and nothing around it.

The executor that this one extends starts Snakemake in each job, which starts it once more there
before the command begins. Rules that are jobs must have a shell command.
"""

import shlex

from snakemake_executor_plugin_slurm import Executor as SlurmExecutor
from snakemake_executor_plugin_slurm import ExecutorSettings, common_settings
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface

__all__ = ["Executor", "ExecutorSettings", "common_settings"]


class Executor(SlurmExecutor):
    """`executor: slurm-shell`; wants `slurm-shell-pass-command-as-script: true`."""

    def format_job_exec(self, job: JobExecutorInterface) -> str:
        """The line that a job's script consists of."""
        return f"exec bash -euo pipefail -c {shlex.quote(job.shellcmd)}"
