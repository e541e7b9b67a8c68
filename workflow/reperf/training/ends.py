"""How the runs of a report have ended, and how to run again what has not ended well."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from reperf.layout import RUN_RECORD
from reperf.training.record import FINAL
from reperf.training.tries import keep_lost, this_call


def rerun_command(options: Mapping[str, Sequence[str]]) -> str:
    """The command that runs again what failed, and nothing else.

    Args:
        options: of this call, those that say which report it is of, with their values.
    """
    call = shlex.join(["snakemake", *(word for name in options for word in (name, *options[name]))])
    # With --config a report is not what its files say, but what this call has planned.
    named = () if "--config" in options else options.get("--configfile", ())
    runs = shlex.join(["reperf", "runs", "--failed", *(("--configfile", *named) if named else ())])
    return f"{call} --forcerun $({runs})"


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
