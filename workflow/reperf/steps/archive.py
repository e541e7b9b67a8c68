"""Archive a suite."""

import json
from pathlib import Path

from reperf.archive.contents import trainers_of, write_archive
from reperf.building.code import seen_from_here
from reperf.building.made import making
from reperf.config import load_report
from reperf.layout import ARCHIVE, SUITE_CONFIG, figures_of, tables_of
from reperf.measuring.again import check_tables
from reperf.plans.measured import measured_by
from reperf.plans.suite_plan import SuitePlan


def run(suite: str) -> None:
    plan = SuitePlan.of(suite)
    config, output = SUITE_CONFIG.format(suite=suite), ARCHIVE.format(suite=suite)
    inputs = [*measured_by(plan), *plan.descriptions(), config]
    inputs += [*tables_of(suite), *figures_of(suite), *seen_from_here(trainers_of(plan.runs))]
    with making("archive", [output], inputs):
        check_tables(plan.suite, plan.cells, plan.plans)
        report = load_report(json.loads(Path(config).read_bytes()), config)
        write_archive(report, plan.runs, Path(output))
