"""Whether a report is complete, and how to run again what failed."""

from pathlib import Path

import pandas as pd

from reperf.errors import ReperfError
from reperf.files import whole_file
from reperf.tables import read_summary

EXPLAINED = ("ok", "oom", "unsupported")
"""Cell statuses that another run would not change."""


def failed_cells(summary: pd.DataFrame) -> pd.DataFrame:
    """The cells that another run could still measure; logs that others made are what they are."""
    return summary[~summary["status"].isin(EXPLAINED) & (summary["source"] == "")]


def rerun_command(profile: str) -> str:
    """The one command that runs again just what failed."""
    return f"snakemake --profile {profile} --forcerun $(reperf runs --failed)"


def complete(summary: Path, output: Path, profile: str) -> None:
    """Write the closing line of a report that is complete.

    Raises:
        ReperfError: some cells failed; the message names them and the command that reruns them.
    """
    cells = read_summary(summary)
    failed = failed_cells(cells)
    if len(failed):
        names = ", ".join(
            f"{cell.suite}/{cell.system}/{cell.topology} ({cell.status}: {cell.reason})"
            for cell in failed.itertuples()
        )
        raise ReperfError(
            f"{len(failed)} of {len(cells)} cells failed: {names}; "
            f"the report shows them; run them again: {rerun_command(profile)}"
        )
    with whole_file(output) as stream:
        stream.write(f"{len(cells)} cells, each measured or explained\n")
