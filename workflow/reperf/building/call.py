"""What this call of Snakemake is about: the one place that touches Snakemake's private state.

Snakemake's public interface ends at rules and plugins. The parts of its `workflow` that are used
here may be renamed in its next version, so pyproject.toml allows only the versions that CI tests.
"""

from typing import Any


class Call:
    """One call of Snakemake, as rules ask for it.

    Args:
        workflow: Snakemake's own, as rules get it.
    """

    def __init__(self, workflow: Any) -> None:  # noqa: ANN401 - Snakemake's own
        self._workflow = workflow

    @property
    def configfile(self) -> str:
        """The configuration file in force, the last one named; "" if none is named yet.

        Private, because Snakemake gives rules what the file says, but not its name.
        """
        return str(next(reversed(self._workflow.configfiles), ""))

    @property
    def retries(self) -> int:
        """How often a failed job is tried again.

        Private, because a job does not learn which of its tries is the last.
        """
        return self._workflow.execution_settings.retries

    def asks_for(self, rule: str, path: str) -> bool:
        """Whether a file is to be made even if it is there: by its own name, or with --forcerun.

        Private, because rules do not learn what the command line asks for.
        """
        asked = self._workflow.dag_settings
        forced = asked.forcerun | (asked.targets if asked.forcetargets else frozenset())
        return bool(asked.forceall) or not forced.isdisjoint((rule, path))

    def is_target(self, path: str) -> bool:
        """Whether a file was asked for by its own name."""
        return path in self._workflow.dag_settings.targets

    @property
    def failed(self) -> set[str]:
        """What the jobs that have failed should have made; none if the user stopped the call.

        Private, because `onerror` does not learn which jobs have failed. After Ctrl-C none has.
        """
        scheduler = self._workflow.scheduler
        if scheduler._user_kill:
            return set()
        return {str(file) for job in scheduler.failed for file in job.output}
