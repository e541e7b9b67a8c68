"""How the runs of a report have ended, and how to run again what has not ended well."""

import json
import logging
import shlex
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from reperf.building.work_folder import wait_for_steps
from reperf.config import Report, Run, load_report
from reperf.configfiles import read_report
from reperf.errors import ReperfError, one_line_errors
from reperf.files import write_whole
from reperf.layout import PAGES, REPORT_PLAN, RUN_RECORD, SUITE_PLAN, SURVEY_FOLDER, tables_of
from reperf.plans.plan_files import ReportPlan, SuitePlan
from reperf.plans.planning import Plans
from reperf.records.run_record import FINAL, LargestBatch
from reperf.training.slurm import cancel_jobs
from reperf.training.tries import keep_lost, this_call

logger = logging.getLogger("snakemake.logging")
"""Snakemake's own: its lines come from another thread, and keep their order."""


def planned_runs(configfiles: Sequence[Path]) -> list[Run]:
    """The runs of a report, trained or not; logs that others made are none.

    Without configfiles, it is the report that Snakemake was last called for here.
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
    from reperf.tables import read_measurements  # noqa: PLC0415 - pandas: half a second

    runs = list(runs)
    logs: dict[str, str] = {}
    for table in {Path(tables_of(run.suite)[0]) for run in runs}:
        if table.exists():
            measured = read_measurements(table)
            own = measured[measured["source"] == ""]
            logs |= dict(zip(own["log"], own["status"], strict=True))

    def has_failed(run: Run) -> bool:
        status = logs.get(str(run.log))
        return bool(fault_of_runs([str(run.folder)])) if status is None else status not in FINAL

    return [run for run in runs if has_failed(run)]


def failed_searches(runs: Iterable[Run]) -> list[str]:
    """What failed searches for the largest batch have left, on which some runs depend."""
    plans = (Path(SUITE_PLAN.format(suite=suite)) for suite in {run.suite: 0 for run in runs})
    batches = (SuitePlan.read(plan).batches for plan in plans if plan.exists())
    paths = dict.fromkeys(path for of_suite in batches for path in of_suite.values())
    return [path for path in paths if Path(path).exists() and not _has_ended(path)]


def _has_ended(search: str) -> bool:
    try:
        return LargestBatch.read(search).status in FINAL
    except ReperfError:  # it was edited
        return False


def fault_of_runs(runs: Iterable[str], *, of_this_call: bool = False) -> str:
    """The first run, of this call or of all, that has not ended well, in a line; "" without one."""
    for run in runs:
        # Ten thousand are read in a second, as they are; the tables say what is wrong with records.
        with suppress(OSError, ValueError, KeyError, RecursionError):
            record = json.loads(Path(run, RUN_RECORD).read_bytes())
            if record["status"] not in FINAL and not (
                of_this_call and record["call"] != this_call()
            ):
                return f"{run}: {record['status']}: {record['reason']}"
    return ""


def rerun_command(arguments: Sequence[str] | None = None) -> str:
    """The command that runs again what failed: this call's, or the arguments', with --forcerun."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    at = words.index("--") if "--" in words else len(words)
    forced = "--forcerun $(reperf runs --failed)"
    return " ".join(
        filter(None, ["snakemake", shlex.join(words[:at]), forced, shlex.join(words[at:])])
    )


def after_success(plans: Plans, *, since: float) -> None:
    """Say where the report is, or what a survey found, if it was made since a time in seconds.

    If a run of this call has failed, the call ends with that fault instead.
    """
    # A call that makes the whole report ends otherwise if a run has failed, see `complete`.
    if fault := fault_of_runs(plans.runs, of_this_call=True):
        sys.exit(f"reperf: {fault}; run it again: {rerun_command()}")
    if Path(PAGES[0]).exists() and Path(PAGES[0]).stat().st_mtime > since:
        logger.warning(f"The report is in {PAGES[0]} and {PAGES[1]}")
    survey = SURVEY_FOLDER / "survey.txt"
    if survey.exists() and survey.stat().st_mtime > since:
        logger.warning(survey.read_text(encoding="utf-8").rstrip())


def after_failure(plans: Plans, report: Report) -> None:
    """Make lost runs show, say how to go on, and cancel what Snakemake has not cancelled."""
    with one_line_errors():
        # A run that the user has ended may still be about to say so.
        wait_for_steps(Path.cwd(), "the steps of the last call")
    if [run for run in map(Path, plans.runs) if keep_lost(run)]:
        logger.error("reperf: runs were lost; repeat the command to put them into the report")
    elif failed_runs(plan.run for plan in plans.runs.values()):
        logger.error(f"run the failed cells again: {rerun_command()}")
    if report.slurm:
        with one_line_errors():
            cancel_jobs(Path.cwd())


def complete(summary: Path, measurements: Path, output: Path) -> None:
    """Write the closing line of a report whose runs have ended; refused if cells have failed."""
    from reperf.tables import CELL, read_measurements, read_summary  # noqa: PLC0415 - pandas

    cells = read_summary(summary)
    runs = read_measurements(measurements)
    ended_badly = runs[(runs["source"] == "") & ~runs["status"].isin(FINAL)]
    failed = cells.merge(ended_badly[list(CELL)].drop_duplicates())
    if len(failed):
        named = ", ".join(
            f"{cell.suite}/{'+'.join(filter(None, (cell.system, cell.variant)))}/{cell.topology} "
            f"({cell.status}: {cell.reason})"
            for cell in failed.itertuples()
        )
        raise ReperfError(
            f"{len(failed)} of {len(cells)} cells failed: {named}; the report shows them"
        )
    write_whole(output, f"{len(cells)} cells, each measured or explained\n")
