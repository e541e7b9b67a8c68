"""Where results lie in the working folder: one name for each, in rules, commands and archives.

The published numbers that a report stands on lie beside the code, in reperf's own folder.
"""

from collections.abc import Iterable
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_IN_A_WHEEL = _PACKAGE / "clone"

ROOT = _IN_A_WHEEL if _IN_A_WHEEL.is_dir() else _PACKAGE.parents[1]
"""A clone of reperf's repository, or what a wheel holds of one, at the same places below it."""

RUN_LOG = "train.log"
RUN_RECORD = "run.json"
RUN_FILES = (RUN_LOG, RUN_RECORD)  # what a run leaves in its folder when it ends

TRIES = "tries"  # the folder in a run's folder that keeps all of its tries, from 1

PLAN = "plan.json"  # what decides a run, a search, a data set or a suite, in the folder of each

RUN_FOLDER = "results/runs/{suite}/{entry}/{topology}/{repeat}"

BATCH_FOLDERS = Path("results/largest")
BATCH_FOLDER = f"{BATCH_FOLDERS}/{{entry}}/{{digest}}"
BATCH_RECORD = "batch.json"
"""What a search for the largest batch leaves in its folder, beside its trials."""

SUITE_PLAN = f"results/suites/{{suite}}/{PLAN}"
SUITE_CONFIG = "results/suites/{suite}/config.json"  # the configuration that asks for a suite alone
SUITE_MEASUREMENTS = "results/suites/{suite}/measurements.csv"
SUITE_SUMMARY = "results/suites/{suite}/summary.csv"

REPORT_PLAN = f"results/{PLAN}"  # which suites are in the report, and by which profile it is made
SET_PLAN = f"data/{{set}}/{PLAN}"

ALL_MEASUREMENTS = "results/measurements.csv"
ALL_SUMMARY = "results/summary.csv"

PAGES = ("results/report.html", "results/report.md", "results/published.html")
"""The report, as people read it, and the published reports beside it."""
COMPLETE = "results/complete.txt"
DIAGNOSIS = Path("results/doctor.json")  # what `reperf doctor` found

SURVEY_FOLDER = Path("results/survey")
"""What `reperf survey` leaves: its runs, survey.json, and survey.html and survey.txt for people."""

PUBLISHED_KINDS = ("throughput", "speedup", "efficiency")  # the figures of published tables
FIGURE_KINDS = (*PUBLISHED_KINDS, "steps", "energy", "utilisation")
UNSCALED_KINDS = ("throughput", "steps", "energy", "utilisation")
"""The figures of suites on a single topology, which have no speedups."""
EPOCHS = "epochs"
"""The figure of suites whose devices share a model; published epochs stand in it, which no archive
holds."""
FIGURE_SUFFIXES = ("svg", "png")
FIGURES = "figures/{suite}"  # the beginning of the names of a suite's figures

ARCHIVE = "archive/{suite}.zip"

PUBLISHED = ROOT / "data" / "published"
PUBLISHED_FILES = tuple(
    PUBLISHED / name
    for name in ("published.csv", "repeats.csv", "discrepancies.csv", "tables.yaml")
)
"""What the published part of a report is made from: numbers, repeats, contradictions and
table definitions."""


def tables_of(suite: str) -> list[str]:
    """The tables of a suite: its measurements, its summary."""
    return [table.format(suite=suite) for table in (SUITE_MEASUREMENTS, SUITE_SUMMARY)]


def figures_of(suite: str, kinds: Iterable[str] = FIGURE_KINDS) -> list[str]:
    """The figures of a suite, of some kinds."""
    stem = FIGURES.format(suite=suite)
    return [f"{stem}-{kind}.{suffix}" for kind in kinds for suffix in FIGURE_SUFFIXES]


def checksums_of(suite: str, *, epochs: bool) -> list[str]:
    """The lists of the SHA-256 of a suite's figures."""
    names = ["figures", *[EPOCHS] * epochs]
    return [f"results/suites/{suite}/{name}.sha256" for name in names]
