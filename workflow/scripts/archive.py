"""Archive a suite, if its tables and figures are what the logs give."""

import json
from pathlib import Path

from reperf.archive.contents import write_archive
from reperf.building.script import script
from reperf.config import load_report
from reperf.drawing.figures import check_figures
from reperf.layout import SUITE_CONFIG, figures_of
from reperf.measuring.again import check_tables
from reperf.plans.plan_files import SuitePlan

with script(snakemake.log[0], guarded=False):
    plan = SuitePlan.of(snakemake.wildcards.suite)
    check_tables(plan.suite, plan.cells, plan.plans)
    check_figures(plan.suite.name, figures_of(plan.suite.name))
    config = SUITE_CONFIG.format(**snakemake.wildcards)
    report = load_report(json.loads(Path(config).read_bytes()), config)
    write_archive(report, plan.runs, Path(snakemake.output[0]))
