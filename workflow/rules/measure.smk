# From logs to numbers: one process per suite measures all of its runs and logs.

from reperf.errors import one_line_errors
from reperf.layout import (
    ALL_MEASUREMENTS,
    ALL_SUMMARY,
    SUITE_MEASUREMENTS,
    SUITE_SUMMARY,
)
from reperf.measuring.found_logs import files_of
from reperf.measuring.log_sources import check_sources

with one_line_errors():
    check_sources(REPORT)


def logs_of_suite(wildcards):
    return [str(run.log) for run in RUNS[wildcards.suite]]


def records_of_suite(wildcards):
    return [str(run.record) for run in RUNS[wildcards.suite]]


def runs_of_suite(wildcards):
    return [run.model_dump(mode="json") for run in RUNS[wildcards.suite]]


def sources_of_suite(wildcards):
    sources = REPORT.suite(wildcards.suite).sources
    return [str(file) for source in sources for file in files_of(source.path)]


def settings_of_suite(wildcards):
    return REPORT.suite(wildcards.suite).model_dump(mode="json", by_alias=True)


def cells_of_suite(wildcards):
    return [
        cell.model_dump(mode="json")
        for cell in REPORT.cells(REPORT.suite(wildcards.suite))
    ]


def unit_of_suite(wildcards):
    return REPORT.suite(wildcards.suite).unit


def baseline_of_suite(wildcards):
    return REPORT.suite(wildcards.suite).baseline


MEASURE = {"suite": settings_of_suite, "runs": runs_of_suite}
SUMMARISE = {
    "cells": cells_of_suite,
    "unit": unit_of_suite,
    "baseline": baseline_of_suite,
}


rule measure:
    input:
        built(SUITE_MEASUREMENTS, MEASURE),
        logs=logs_of_suite,
        records=records_of_suite,
        sources=sources_of_suite,
        code=code_of("measure"),
    output:
        SUITE_MEASUREMENTS,
    log:
        "logs/measure/{suite}.log",
    params:
        **MEASURE,
    message:
        "measure {wildcards.suite}"
    script:
        "../scripts/measure.py"


rule summarise:
    input:
        built(SUITE_SUMMARY, SUMMARISE),
        measurements=SUITE_MEASUREMENTS,
        code=code_of("summarise"),
    output:
        SUITE_SUMMARY,
    log:
        "logs/summarise/{suite}.log",
    params:
        **SUMMARISE,
    message:
        "summarise {wildcards.suite}"
    script:
        "../scripts/summarise.py"


rule join_tables:
    input:
        built(ALL_MEASUREMENTS, {}),
        measurements=expand(SUITE_MEASUREMENTS, suite=SUITES),
        summaries=expand(SUITE_SUMMARY, suite=SUITES),
        code=code_of("join_tables"),
    output:
        measurements=ALL_MEASUREMENTS,
        summary=ALL_SUMMARY,
    log:
        "logs/join_tables.log",
    message:
        "join the tables of all suites"
    script:
        "../scripts/join_tables.py"
