"""How the runs of a report have ended, and how to run again what has not ended well."""

import json
import logging
import shlex
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from reperf.layout import PAGES, RUN_RECORD
from reperf.records.run_record import FINAL
from reperf.training.tries import keep_lost, this_call

if TYPE_CHECKING:
    from reperf.plans.planning import Plans

logger = logging.getLogger("snakemake.logging")
"""Snakemake's own: its lines come from another thread, and keep their order."""


def rerun_command(arguments: Sequence[str] | None = None) -> str:
    """The command that runs again what failed, and nothing else: this call's, with --forcerun.

    Args:
        arguments: of this call; left out, this process's.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    at = words.index("--") if "--" in words else len(words)
    forced = "--forcerun $(reperf runs --failed)"
    return " ".join(
        filter(None, ["snakemake", shlex.join(words[:at]), forced, shlex.join(words[at:])])
    )


def after_success(plans: "Plans", *, since: float) -> None:
    """Say where the report is; end otherwise if a run has failed that this call asked for.

    Args:
        since: when the call began, in seconds of the epoch.
    """
    # A call that makes the whole report ends otherwise if a run has failed, see `complete`.
    if fault := fault_of_runs(plans.runs, of_this_call=True):
        sys.exit(f"reperf: {fault}; run it again: {rerun_command()}")
    if Path(PAGES[0]).exists() and Path(PAGES[0]).stat().st_mtime > since:
        logger.warning(f"The report is in {PAGES[0]} and {PAGES[1]}")


def keep_lost_runs(runs: Iterable[str]) -> bool:
    """Make the last tries of this call's lost runs their ends; see `reperf.training.tries`.

    Args:
        runs: their folders.

    Returns:
        Whether there were any.
    """
    return sum(keep_lost(Path(run)) for run in runs) > 0


def fault_of_runs(runs: Iterable[str], *, of_this_call: bool = False) -> str:
    """The first run whose record says that it has not ended well, in one line; "" if none does.

    Args:
        runs: their folders.
        of_this_call: leave out those that earlier calls have tried.
    """
    for run in runs:
        # Ten thousand are read in a second, as they are; the tables say what is wrong with records.
        with suppress(OSError, ValueError, KeyError, RecursionError):
            record = json.loads(Path(run, RUN_RECORD).read_bytes())
            if record["status"] not in FINAL and not (
                of_this_call and record["call"] != this_call()
            ):
                return f"{run}: {record['status']}: {record['reason']}"
    return ""
