# What people read: one HTML file and one Markdown file.

from reperf.doctor.diagnosis import DIAGNOSIS
from reperf.layout import ALL_MEASUREMENTS, ALL_SUMMARY, figures_of


def diagnosis_if_made(wildcards):
    """What `reperf doctor` found, if it was ever called."""
    return [str(DIAGNOSIS)] if DIAGNOSIS.exists() else []


WRITE_REPORT = {"report": REPORT.model_dump(mode="json", by_alias=True)}


rule report:
    input:
        built("results/report.html", WRITE_REPORT),
        diagnosis=diagnosis_if_made,
        measurements=ALL_MEASUREMENTS,  # they stand for the runs' records, too
        summary=ALL_SUMMARY,
        figures=[file for suite in SUITES for file in figures_of(suite)],
        published="figures/published",
        facts=PUBLISHED_FACTS,
        code=code_of("write_report"),
    output:
        html=report(
            "results/report.html",
            caption="../captions/report.rst",
            category="Report",
        ),
        markdown="results/report.md",
    log:
        "logs/report.log",
    params:
        **WRITE_REPORT,
    message:
        "write the report"
    script:
        "../scripts/write_report.py"
