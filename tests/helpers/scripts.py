"""The workflow's scripts, run as Snakemake runs them, in this process."""

import runpy
from pathlib import Path
from types import SimpleNamespace

from reperf.layout import tables_of

from tests.helpers.small_benchmark import ROOT


def run_script(name: str, output: str, *, log: Path, **given: object) -> None:
    """Run a script that starts no programs.

    Args:
        output: what it writes.
        log: where its messages go.
        given: `wildcards` and `input`, with the attributes that it reads.
    """
    snakemake = SimpleNamespace(output=[output], log=[log], **given)
    runpy.run_path(str(ROOT / f"workflow/scripts/{name}.py"), {"snakemake": snakemake})


def measure_and_summarise(suite: str, log: Path) -> None:
    """Make the tables of a suite in the working folder, where its plan lies."""
    measurements, summary = tables_of(suite)
    wildcards = SimpleNamespace(suite=suite)
    run_script("measure", measurements, log=log, wildcards=wildcards)
    read = SimpleNamespace(measurements=measurements)
    run_script("summarise", summary, log=log, wildcards=wildcards, input=read)
