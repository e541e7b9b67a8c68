"""Which runs can be run again, how to do so, and whether a report is complete without them."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from reperf.errors import ReperfError
from reperf.files import whole_file
from reperf.measuring.tables import IDENTITY, read_measurements, read_summary
from reperf.training.ends import rerun_command
from reperf.training.record import FINAL


def own_runs(measurements: pd.DataFrame) -> pd.DataFrame:
    """The runs that reperf trained; logs that others made cannot be run again."""
    return measurements[measurements["source"] == ""]


def failed_runs(measurements: pd.DataFrame) -> pd.DataFrame:
    """The runs that another try might still measure."""
    runs = own_runs(measurements)
    return runs[~runs["status"].isin(FINAL)]


def runs_that_fit(runs: pd.DataFrame, wanted: Mapping[str, str | int | None]) -> pd.DataFrame:
    """The runs with these values in these columns; None fits any."""
    for column, value in wanted.items():
        if value is not None:
            runs = runs[runs[column] == value]
    return runs


def complete(summary: Path, measurements: Path, output: Path, profile: str) -> None:
    """Write the closing line of a report, if it is complete.

    A report is complete if every run has ended for good, measured or not: none of them failed.

    Raises:
        ReperfError: some cells failed; the message names them and the command that reruns them.
    """
    cells = read_summary(summary)
    names = [*IDENTITY, "source"]
    failed = cells.merge(failed_runs(read_measurements(measurements))[names].drop_duplicates())
    if len(failed):
        told = ", ".join(
            f"{cell.suite}/{cell.system}/{cell.topology} ({cell.status}: {cell.reason})"
            for cell in failed.itertuples()
        )
        raise ReperfError(
            f"{len(failed)} of {len(cells)} cells failed: {told}; "
            f"the report shows them; run them again: {rerun_command(profile)}"
        )
    with whole_file(output) as stream:
        stream.write(f"{len(cells)} cells, each measured or explained\n")
