# What people read: one HTML file and one Markdown file; and the last word on the whole report.

from reperf.layout import DIAGNOSIS, tables_of


def diagnosis_if_made(wildcards):
    """What `reperf doctor` found, if it was ever called."""
    return [str(DIAGNOSIS)] if DIAGNOSIS.exists() else []


def all_measured(wildcards):
    """The plans of all suites, and what they measure: the tables are held against it once more."""
    found = [file for plan in PLANS.suites.values() for file in measured_by(plan)]
    return existing_plans(found)


def all_descriptions(wildcards):
    """What the page says of workloads and systems beyond the tables."""
    found = [file for plan in PLANS.suites.values() for file in plan.descriptions()]
    return sorted({*found})


rule report:
    input:
        unless_current("report"),
        plan=if_written("results/plan.json"),
        measured=all_measured,
        tables=[table for suite in SUITES for table in tables_of(suite)],
        measurements=ALL_MEASUREMENTS,
        summary=ALL_SUMMARY,
        figures=[file for suite in SUITES for file in PLANS.suites[suite].suite.figures],
        published="figures/published",
        facts=PUBLISHED_FACTS,
        described=all_descriptions,
        diagnosis=diagnosis_if_made,
    output:
        html=report(
            "results/report.html",
            caption="../captions/report.rst",
            category="Report",
        ),
        markdown="results/report.md",
    log:
        "logs/report.log",
    message:
        "write the report"
    shell:
        "{PYTHON:q} -m reperf.steps report --log {log:q}"


# Everything is built, and every cell is measured or its absence is explained.
rule complete:
    input:
        unless_current("complete"),
        plan=if_written("results/plan.json"),
        summary=ALL_SUMMARY,
        measurements=ALL_MEASUREMENTS,
        pages=PAGES,
        archives=expand(ARCHIVE, suite=SUITES),
    output:
        COMPLETE,
    log:
        "logs/complete.log",
    retries: 0  # another try would find the same
    message:
        "look for cells that were not measured"
    shell:
        "{PYTHON:q} -m reperf.steps complete --log {log:q}"
