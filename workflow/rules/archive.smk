# One archive per suite: its tables and figures, and all that they came from.

from reperf.archive.contents import trainers_of
from reperf.layout import figures_of, tables_of


def digest_of_config(wildcards):
    """Of the configuration that asks for the suite alone, which the archive holds."""
    return sha256(PLANS.configs[wildcards.suite].encode()).hexdigest()


rule archive:
    input:
        measured=measured_of_suite,  # the tables are held against it once more
        results=lambda wildcards: [
            *tables_of(wildcards.suite),
            *figures_of(wildcards.suite),
        ],
        trainers=lambda wildcards: seen_from_here(
            trainers_of(plan_of_suite(wildcards).runs)
        ),
        described=descriptions_of_suite,
        code=code_of("archive"),
    output:
        ARCHIVE,
    log:
        "logs/archive/{suite}.log",
    params:
        plan=digest_of_suite,
        config=digest_of_config,
    message:
        "archive {wildcards.suite}"
    script:
        "../scripts/archive.py"
