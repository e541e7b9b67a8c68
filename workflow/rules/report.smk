# What people read: one HTML file and one Markdown file; and the last word on the whole report.

from reperf.layout import DIAGNOSIS, tables_of


rule report:
    input:
        measured=lambda wildcards: measured_of(*SUITES),  # the tables are held against it
        tables=[table for suite in SUITES for table in tables_of(suite)],
        measurements=ALL_MEASUREMENTS,
        summary=ALL_SUMMARY,
        figures=PLANS.figures,
        checksums=PLANS.checksums,
        published_figures="figures/published",
        facts=PUBLISHED_FACTS,
        described=PLANS.descriptions,
        archives=expand(ARCHIVE, suite=SUITES),  # the page names their SHA-256
        diagnosis=[str(DIAGNOSIS)] if DIAGNOSIS.exists() else [],  # what `reperf doctor` found
        baseline=[str(REPORT.baseline)] if REPORT.baseline else [],
        code=code_of("report"),
    output:
        html=report(PAGES[0], caption="../captions/report.rst", category="Report"),
        markdown=PAGES[1],
        published=PAGES[2],
    log:
        "logs/report.log",
    params:
        plan=PLANS.whole.digest,
    message:
        "write the report"
    script:
        "../scripts/report.py"


# Everything is built, and every cell is measured or its absence is explained.
rule complete:
    input:
        summary=ALL_SUMMARY,
        measurements=ALL_MEASUREMENTS,
        pages=PAGES,
        archives=expand(ARCHIVE, suite=SUITES),
        code=code_of("complete"),
    output:
        COMPLETE,
    log:
        "logs/complete.log",
    retries: 0  # another try would find the same
    message:
        "look for cells that were not measured"
    script:
        "../scripts/complete.py"
