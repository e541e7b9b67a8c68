"""Write the report."""

from itertools import chain
from pathlib import Path

from reperf.building.script import building
from reperf.config import load_report
from reperf.doctor.diagnosis import Diagnosis
from reperf.measuring.tables import read_measurements, read_summary
from reperf.report import write_report
from reperf.training.record import records_of

with building(snakemake):
    report = load_report(snakemake.params.report)
    runs = chain.from_iterable(map(report.runs, report.suites))
    write_report(
        report,
        records_of(runs),
        read_measurements(snakemake.input.measurements),
        read_summary(snakemake.input.summary),
        figures=Path(snakemake.input.published).parent,
        html=Path(snakemake.output.html),
        markdown=Path(snakemake.output.markdown),
        diagnosis=next(map(Diagnosis.read, snakemake.input.diagnosis), None),
    )
