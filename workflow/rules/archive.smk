# One archive per suite: its tables and figures, and all that they came from.

from reperf.layout import figures_of, tables_of
from reperf.plans.plan_files import training_files


rule archive:
    input:
        measured=lambda wildcards: measured_of(wildcards.suite),  # the tables are held against it once more
        results=lambda wildcards: [
            *tables_of(wildcards.suite),
            *figures_of(wildcards.suite, PLANS.figure_kinds[wildcards.suite]),
        ],
        checksums=f"{SUITE}/figures.sha256",
        trainers=lambda wildcards: seen_from_here(
            sorted(training_files(plan_of_suite(wildcards).runs).values())
        ),
        described=descriptions_of_suite,
        code=code_of("archive"),
    output:
        ARCHIVE,
    log:
        "logs/archive/{suite}.log",
    params:
        plan=lambda wildcards: plan_of_suite(wildcards).digest,
        config=lambda wildcards: PLANS.config_digest(wildcards.suite),
    message:
        "archive {wildcards.suite}"
    script:
        "../scripts/archive.py"
