# From logs to numbers: one process per suite measures all of its runs and logs.

from reperf.layout import RUN_FILES

SUITE = "results/suites/{suite}"


def plan_of_suite(wildcards):
    return PLANS.suites[wildcards.suite]


@or_end
def measured_of(*suites):
    """The logs and records of the runs of some suites, and the logs of others."""
    plans = [PLANS.suites[suite] for suite in suites]
    own = [
        f"{run}/{name}" for plan in plans for run in plan.plans for name in RUN_FILES
    ]
    sources = [source for plan in plans for source in plan.suite.sources]
    if not sources:
        return own
    from reperf.measuring.found_logs import files_of  # as slow as all readers of logs

    return own + [str(file) for source in sources for file in files_of(source.path)]


def descriptions_of_suite(wildcards):
    """The files that say what the suite's workload and its systems are."""
    return plan_of_suite(wildcards).descriptions()


rule measure:
    input:
        measured=lambda wildcards: measured_of(wildcards.suite),
        searches=lambda wildcards: plan_of_suite(wildcards).searches,
        described=descriptions_of_suite,  # units and parameters
        code=code_of("measure"),
        memory=MEMORY,
    output:
        f"{SUITE}/measurements.csv",
    log:
        "logs/measure/{suite}.log",
    params:
        plan=lambda wildcards: plan_of_suite(wildcards).digest,
    message:
        "measure {wildcards.suite}"
    script:
        "../scripts/measure.py"


rule summarise:
    input:
        measurements=f"{SUITE}/measurements.csv",
        searches=lambda wildcards: plan_of_suite(wildcards).searches,
        described=descriptions_of_suite,  # what a sample costs, and an epoch holds
        code=code_of("summarise"),
    output:
        f"{SUITE}/summary.csv",
    log:
        "logs/summarise/{suite}.log",
    params:
        plan=lambda wildcards: plan_of_suite(wildcards).digest,
    message:
        "summarise {wildcards.suite}"
    script:
        "../scripts/summarise.py"


rule join_tables:
    input:
        measurements=expand(f"{SUITE}/measurements.csv", suite=SUITES),
        summaries=expand(f"{SUITE}/summary.csv", suite=SUITES),
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
