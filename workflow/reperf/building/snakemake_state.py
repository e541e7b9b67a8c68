"""What this call of Snakemake is about: the one place that touches Snakemake's private state.

Snakemake's public interface ends at rules and plugins. The parts of its `workflow` that are used
here may be renamed in its next version; then this module changes, and no rule does.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any


class SnakemakeState:
    """One call of Snakemake, as rules ask for it.

    Args:
        workflow: Snakemake's own, as rules get it.
    """

    def __init__(self, workflow: Any) -> None:  # noqa: ANN401 - Snakemake's own
        self._workflow = workflow

    @property
    def names_configfile(self) -> bool:
        """Whether --configfile was given, by hand or by a profile."""
        return bool(self._workflow.overwrite_configfiles)

    @property
    def configfile(self) -> str:
        """The configuration file in force: the last one named."""
        return str(self._workflow.configfiles[-1])

    @property
    def root(self) -> Path:
        """Where the Snakefile lies."""
        return Path(self._workflow.basedir)

    @property
    def cores(self) -> int:
        """The cores that all jobs on this machine may use together."""
        return self._workflow.resource_settings.cores or 1

    @property
    def retries(self) -> int:
        """How often a failed job is tried again."""
        return self._workflow.execution_settings.retries

    @property
    def executor(self) -> str:
        """The name of the plugin that runs jobs."""
        return self._workflow.executor_plugin.name

    @property
    def is_main(self) -> bool:
        """Whether this is the process that was called, not one in which it runs a script."""
        return self._workflow.is_main_process

    @property
    def is_dry(self) -> bool:
        """Whether nothing is to be run."""
        return self._workflow.dryrun

    def ask_for_status_with(self, command: str) -> None:
        """Make the Slurm executor ask for the state of its jobs with this command."""
        self._workflow.executor_settings.status_command = command

    def run_again(self, output: Path | str) -> None:
        """Run the job that makes a file in this call, whatever Snakemake remembers of it."""
        self._workflow.dag.forcefiles.add(str(output))

    def is_target(self, path: Path | str) -> bool:
        """Whether a file was asked for by its name."""
        return str(path) in self._workflow.dag_settings.targets

    def jobs_to_run(self, rule: str) -> Iterator[Any]:
        """Snakemake's jobs of a rule that are still to be run."""
        return (job for job in self._workflow.dag.needrun_jobs() if job.rule.name == rule)

    def failed_jobs(self, rule: str) -> list[Any]:
        """Snakemake's failed jobs of a rule; none if the user stopped the workflow."""
        scheduler = self._workflow.scheduler
        if scheduler._user_kill:
            return []
        return [job for job in scheduler.failed if job.rule.name == rule]

    def has_finished(self, rule: str) -> bool:
        """Whether a job of a rule has ended well in this call."""
        return any(job.rule.name == rule for job in self._workflow.dag.finished_jobs)
