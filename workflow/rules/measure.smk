# From logs to numbers: one process a suite measures all of its runs and logs.

from reperf.measuring.found_logs import files_of
from reperf.measuring.log_sources import check_sources

with one_line_errors():
    check_sources(REPORT)


def folders_of_suite(wildcards):
    return [str(run.folder) for run in RUNS[wildcards.suite]]


def logs_of_suite(wildcards):
    return [f"{folder}/train.log" for folder in folders_of_suite(wildcards)]


def records_of_suite(wildcards):
    return [f"{folder}/run.json" for folder in folders_of_suite(wildcards)]


def sources_of_suite(wildcards):
    sources = REPORT.suite(wildcards.suite).sources
    return [str(file) for source in sources for file in files_of(source.path)]


def settings_of_suite(wildcards):
    return REPORT.suite(wildcards.suite).model_dump(mode="json", by_alias=True)


def cells_of_suite(wildcards):
    return [cell.model_dump() for cell in REPORT.cells(REPORT.suite(wildcards.suite))]


rule measure:
    input:
        logs=logs_of_suite,
        records=records_of_suite,
        sources=sources_of_suite,
        code=code_of("measure"),
    output:
        "results/suites/{suite}/measurements.csv",
    log:
        "logs/measure/{suite}.log",
    params:
        suite=settings_of_suite,
        folders=folders_of_suite,
        window=REPORT.window.model_dump(),
    message:
        "measure {wildcards.suite}"
    script:
        "../scripts/measure.py"


rule summarise:
    input:
        measurements="results/suites/{suite}/measurements.csv",
        code=code_of("summarise"),
    output:
        "results/suites/{suite}/summary.csv",
    log:
        "logs/summarise/{suite}.log",
    params:
        cells=cells_of_suite,
    message:
        "summarise {wildcards.suite}"
    script:
        "../scripts/summarise.py"


rule join_tables:
    input:
        measurements=expand("results/suites/{suite}/measurements.csv", suite=SUITES),
        summaries=expand("results/suites/{suite}/summary.csv", suite=SUITES),
        code=code_of("join_tables"),
    output:
        measurements="results/measurements.csv",
        summary="results/summary.csv",
    log:
        "logs/join_tables.log",
    message:
        "join the tables of all suites"
    script:
        "../scripts/join_tables.py"
