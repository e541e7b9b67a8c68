# One archive per suite: its tables and figures, and all that they came from.

from reperf.archive.contents import trainers_of
from reperf.layout import figures_of, tables_of


def results_of_suite(wildcards):
    return [*tables_of(wildcards.suite), *figures_of(wildcards.suite)]


def trainers_of_suite(wildcards):
    return seen_from_here(trainers_of(PLANS.suites[wildcards.suite].runs))


rule archive:
    input:
        unless_current("archive"),
        config=if_written("results/suites/{suite}/config.json"),
        measured=measured_of_suite,  # the tables are held against it once more
        results=results_of_suite,
        trainers=trainers_of_suite,
        described=descriptions_of_suite,
    output:
        ARCHIVE,
    log:
        "logs/archive/{suite}.log",
    message:
        "archive {wildcards.suite}"
    shell:
        "{PYTHON:q} -m reperf.steps archive {wildcards.suite} --log {log:q}"
