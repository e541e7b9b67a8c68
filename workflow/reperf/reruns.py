"""Which runs can be run again, how to do so, and whether a report is complete without them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from reperf.building.work_folder import wait_for_steps
from reperf.config import Report, Run, load_report
from reperf.configfiles import read_report
from reperf.errors import ReperfError, one_line_errors
from reperf.files import whole_file
from reperf.layout import REPORT_PLAN, SUITE_PLAN, tables_of
from reperf.plans.plan_files import ReportPlan, SuitePlan
from reperf.plans.planning import Plans
from reperf.records.run_record import FINAL, LargestBatch
from reperf.tables import CELL, read_measurements, read_summary
from reperf.training.ends import fault_of_runs, keep_lost_runs, logger, rerun_command
from reperf.training.slurm import cancel_forgotten


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


def failed_searches(runs: Iterable[Run]) -> list[str]:
    """What searches for the largest batch have left that failed, for the suites of some runs.

    Until another search, the runs with that batch fail, too.
    """
    plans = (Path(SUITE_PLAN.format(suite=suite)) for suite in {run.suite: 0 for run in runs})
    batches = (SuitePlan.read(plan).batches for plan in plans if plan.exists())
    found = dict.fromkeys(path for one in batches for path in one.values())
    return [path for path in found if Path(path).exists() and not _has_ended(path)]


def _has_ended(search: str) -> bool:
    try:
        return LargestBatch.read(search).status in FINAL
    except ReperfError:  # it was edited
        return False


def after_failure(plans: Plans, report: Report) -> None:
    """Make lost runs show, say how to go on, and cancel what Snakemake has not cancelled."""
    with one_line_errors():
        # A run that the user has ended may still be about to say so.
        wait_for_steps(Path.cwd(), "the steps of the last call")
    if keep_lost_runs(plans.runs):
        logger.error("reperf: runs were lost; repeat the command to put them into the report")
    elif failed_runs(plan.run for plan in plans.runs.values()):
        logger.error(f"run the failed cells again: {rerun_command()}")
    if report.cluster:
        with one_line_errors():
            cancel_forgotten(Path.cwd())


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
