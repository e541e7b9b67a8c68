"""Archive a suite, if its tables are what the logs give, and its figures as drawn."""

import json
from pathlib import Path

from reperf.archive.contents import write_archive
from reperf.building.script import script
from reperf.config import load_report
from reperf.files import check_checksums
from reperf.layout import SUITE_CONFIG
from reperf.measuring.recheck import check_tables
from reperf.plans.plan_files import SuitePlan

with script(snakemake.log[0], guarded=False):
    plan = SuitePlan.of(snakemake.wildcards.suite)
    check_tables(plan.suite, plan.cells, plan.plans)
    check_checksums(snakemake.input.checksums)
    config = SUITE_CONFIG.format(**snakemake.wildcards)
    report = load_report(json.loads(Path(config).read_bytes()), config)
    write_archive(report, plan.runs, Path(snakemake.output[0]))
