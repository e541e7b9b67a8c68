# One archive per suite: its tables and figures, and all that they came from.

from reperf.layout import figures_of, tables_of


def results_of_suite(wildcards):
    return [*tables_of(wildcards.suite), *figures_of(wildcards.suite)]


def trainers_of_suite(wildcards):
    workload = REPORT.suite(wildcards.suite).workload
    builds = {build_of(run): None for run in RUNS[wildcards.suite]}
    files = {
        file: None
        for build in sorted(builds, key=lambda build: build.system.id)
        for file in (*build.system.code(workload), *build.recipe)
    }
    return seen_from_here(files)


def report_of_suite(wildcards):
    return REPORT.alone(wildcards.suite).model_dump(mode="json", by_alias=True)


WRITE_ARCHIVE = {"report": report_of_suite}


# Logs and records are archived too, but are not inputs: the measurements change whenever they do,
# and planning is quicker if not every rule lists them all.
rule archive:
    input:
        built("archive/{suite}.zip", WRITE_ARCHIVE),
        sources=sources_of_suite,
        results=results_of_suite,
        trainers=trainers_of_suite,
        described=descriptions_of_suite,
        code=code_of("write_archive"),
    output:
        "archive/{suite}.zip",
    log:
        "logs/archive/{suite}.log",
    params:
        **WRITE_ARCHIVE,
    message:
        "archive {wildcards.suite}"
    script:
        "../scripts/write_archive.py"
