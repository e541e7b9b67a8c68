"""Which runs can be run again, how to do so, and whether a report is complete without them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from reperf.config import Run, load_report
from reperf.configfiles import read_report
from reperf.errors import ReperfError
from reperf.files import whole_file
from reperf.layout import REPORT_PLAN, tables_of
from reperf.plans.plan_files import ReportPlan
from reperf.tables import CELL, read_measurements, read_summary
from reperf.training.ends import fault_of_runs
from reperf.training.record import FINAL


def planned_runs(configfiles: Sequence[Path]) -> list[Run]:
    """The runs of a report, trained or not; logs that others made are none.

    Args:
        configfiles: the report's; none: the report that Snakemake was last called for here.

    Raises:
        ReperfError: the file is no report, or there was no call.
    """
    if configfiles:
        report, _ = read_report(configfiles)
    elif Path(REPORT_PLAN).exists():
        report = load_report(ReportPlan.read(REPORT_PLAN).report, REPORT_PLAN)
    else:
        raise ReperfError(
            f"{REPORT_PLAN}: not there, so no report has been begun in this folder; allowed: "
            "--configfile FILE"
        )
    return [run for suite in report.suites for run in report.runs(suite)]


def failed_runs(runs: Iterable[Run]) -> list[Run]:
    """Those of a report's runs that have ended, and that another try might still measure."""
    runs = list(runs)
    tables = [Path(tables_of(suite)[0]) for suite in dict.fromkeys(run.suite for run in runs)]
    measured = [read_measurements(table) for table in tables if table.exists()]
    own = [table[table["source"] == ""] for table in measured]
    logs = {
        log: status for one in own for log, status in zip(one["log"], one["status"], strict=True)
    }

    def has_failed(run: Run) -> bool:
        status = logs.get(str(run.log))
        return bool(fault_of_runs([str(run.folder)])) if status is None else status not in FINAL

    return [run for run in runs if has_failed(run)]


def complete(summary: Path, measurements: Path, output: Path) -> None:
    """Write the closing line of a report, if it is complete.

    A report is complete if every run has ended for good, measured or not: none of them failed.

    Raises:
        ReperfError: some cells failed; the message names them.
    """
    cells = read_summary(summary)
    runs = read_measurements(measurements)
    ended_badly = runs[(runs["source"] == "") & ~runs["status"].isin(FINAL)]
    failed = cells.merge(ended_badly[list(CELL)].drop_duplicates())
    if len(failed):
        told = ", ".join(
            f"{cell.suite}/{'+'.join(filter(None, (cell.system, cell.variant)))}/{cell.topology} "
            f"({cell.status}: {cell.reason})"
            for cell in failed.itertuples()
        )
        raise ReperfError(
            f"{len(failed)} of {len(cells)} cells failed: {told}; the report shows them"
        )
    with whole_file(output) as stream:
        stream.write(f"{len(cells)} cells, each measured or explained\n")
