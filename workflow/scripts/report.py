"""Write the report, if its tables are what the logs give, and its figures as drawn."""

from pathlib import Path

from reperf.building.script import script
from reperf.config import load_report
from reperf.files import check_checksums, sha256
from reperf.layout import REPORT_PLAN
from reperf.measuring.comparison_output import compare_with
from reperf.measuring.recheck import check_tables
from reperf.plans.plan_files import ReportPlan, SuitePlan
from reperf.records.diagnosis import Diagnosis
from reperf.records.run_record import records_of
from reperf.report import write_report
from reperf.tables import read_measurements, read_summary

with script(snakemake.log[0], guarded=False):
    configuration = ReportPlan.read(REPORT_PLAN)
    plans = [SuitePlan.of(suite) for suite in configuration.suites]
    for plan in plans:
        check_tables(plan.suite, plan.cells, plan.plans)
    for checksums in snakemake.input.checksums:
        check_checksums(checksums)
    write_report(
        load_report(configuration.report, REPORT_PLAN),
        records_of(run for plan in plans for run in plan.runs),
        read_measurements(snakemake.input.measurements),
        read_summary(snakemake.input.summary),
        figures=Path(snakemake.input.published_figures).parent,
        html=Path(snakemake.output.html),
        markdown=Path(snakemake.output.markdown),
        published=Path(snakemake.output.published),
        archives={archive: sha256(archive) for archive in snakemake.input.archives},
        compared=next((compare_with(Path(base)) for base in snakemake.input.baseline), None),
        diagnosis=next(map(Diagnosis.read, snakemake.input.diagnosis), None),
    )
