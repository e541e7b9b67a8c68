# From logs to numbers: one process per suite measures all of its runs and logs.


def batches_of_suite(wildcards):
    """The batch sizes that the plan leaves to searches."""
    return sorted(set(PLANS.suites[wildcards.suite].batches.values()))


def logs_of_suite(wildcards):
    return [f"{run}/train.log" for run in PLANS.suites[wildcards.suite].plans]


def records_of_suite(wildcards):
    return [f"{run}/run.json" for run in PLANS.suites[wildcards.suite].plans]


def sources_of_suite(wildcards):
    return logs_of_others(PLANS.suites[wildcards.suite])


def descriptions_of_suite(wildcards):
    """The files that say what the suite's workload and its systems are."""
    return PLANS.suites[wildcards.suite].descriptions()


SUITE = "results/suites/{suite}"


rule measure:
    input:
        unless_current("measure"),
        plan=if_written(f"{SUITE}/plan.json"),
        batches=batches_of_suite,
        logs=logs_of_suite,
        records=records_of_suite,
        sources=sources_of_suite,
        described=descriptions_of_suite,  # units and parameters
    output:
        f"{SUITE}/measurements.csv",
    log:
        "logs/measure/{suite}.log",
    message:
        "measure {wildcards.suite}"
    shell:
        "{PYTHON:q} -m reperf.steps measure {wildcards.suite} --log {log:q}"


rule summarise:
    input:
        unless_current("summarise"),
        plan=if_written(f"{SUITE}/plan.json"),
        batches=batches_of_suite,
        described=descriptions_of_suite,  # what a sample costs, and an epoch holds
        measurements=f"{SUITE}/measurements.csv",
    output:
        f"{SUITE}/summary.csv",
    log:
        "logs/summarise/{suite}.log",
    message:
        "summarise {wildcards.suite}"
    shell:
        "{PYTHON:q} -m reperf.steps summarise {wildcards.suite} --log {log:q}"


rule join_tables:
    input:
        unless_current("join_tables"),
        plan=if_written("results/plan.json"),
        measurements=expand(f"{SUITE}/measurements.csv", suite=SUITES),
        summaries=expand(f"{SUITE}/summary.csv", suite=SUITES),
    output:
        measurements=ALL_MEASUREMENTS,
        summary=ALL_SUMMARY,
    log:
        "logs/join_tables.log",
    message:
        "join the tables of all suites"
    shell:
        "{PYTHON:q} -m reperf.steps join_tables --log {log:q}"
