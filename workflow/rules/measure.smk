# From logs to numbers: one process per suite measures all of its runs and logs.


def plan_of_suite(wildcards):
    """The plan of the suite, and the batch sizes that it leaves to searches."""
    return existing_plans(PLANS.suites[wildcards.suite].files)


def measured_of_suite(wildcards):
    """The same, and what the suite measures: its logs and records, and the logs of others."""
    return existing_plans(measured_by(PLANS.suites[wildcards.suite]))


def descriptions_of_suite(wildcards):
    """The files that say what the suite's workload and its systems are."""
    return PLANS.suites[wildcards.suite].descriptions()


SUITE = "results/suites/{suite}"


rule measure:
    input:
        unless_current("measure"),
        measured=measured_of_suite,
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
        plan=plan_of_suite,
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
