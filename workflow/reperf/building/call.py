"""What this call of Snakemake is about: the one place that touches Snakemake's private state.

Snakemake's public interface ends at rules and plugins. The parts of its `workflow` that are used
here may be renamed in its next version, so pyproject.toml allows only the versions that CI tests.
"""

import os
import sys
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Sequence
from typing import Any

from reperf.configfiles import name_of


class Call:
    """One call of Snakemake, as rules ask for it."""

    def __init__(self, workflow: Any) -> None:  # noqa: ANN401 - Snakemake's own
        self._workflow = workflow

    @property
    def configfiles(self) -> list[str]:
        """The configuration files, the later over the earlier; by short paths below this folder.

        Private, because Snakemake gives rules what the files say, but not their names.
        """
        over = self._workflow.overwrite_configfiles
        own = (file for file in self._workflow.configfiles if file not in over)
        paths = [(os.path.relpath(file), str(file)) for file in (*own, *over)]
        return [path if here.startswith("..") else here for here, path in paths]

    @property
    def configfile(self) -> str:
        """The configuration files as a message names them."""
        return name_of(self.configfiles)

    @property
    def configuration(self) -> str:
        """The configuration as a message names it: its files, and what --config puts over it."""
        over = " ".join(self.options.get("--config", ()))
        return f"{self.configfile} with --config {over}" if over else self.configfile

    @property
    def options(self) -> dict[str, list[str]]:
        """The options of the command line that say which report it is of, with their values."""
        return options_of(sys.argv[1:])

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


def options_of(arguments: Sequence[str]) -> dict[str, list[str]]:
    """The options among Snakemake's arguments that say which report a call is of.

    Of an option that is given twice the last counts, as it does for Snakemake.
    """
    parser = ArgumentParser(add_help=False, allow_abbrev=False, argument_default=SUPPRESS)
    parser.add_argument("--profile", nargs=1)
    parser.add_argument("--configfile", "--configfiles", nargs="*")
    parser.add_argument("--config", "-C", nargs="*")
    known, _ = parser.parse_known_args(arguments)
    return {f"--{name}": values for name, values in vars(known).items()}
