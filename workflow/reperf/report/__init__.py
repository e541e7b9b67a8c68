"""The report: what was run, on what, what came out, and where every number comes from."""

from collections.abc import Iterable, Mapping
from os.path import relpath
from pathlib import Path

import pandas as pd

from reperf.config import Report
from reperf.files import write_whole
from reperf.layout import PAGES
from reperf.measuring.comparison_output import Compared
from reperf.records.diagnosis import Diagnosis
from reperf.records.run_record import RunRecord
from reperf.report.context import gather
from reperf.report.html import render_html, render_published
from reperf.report.markdown import render_markdown

__all__ = ["write_report"]


def write_report(
    report: Report,
    records: Iterable[RunRecord],
    measurements: pd.DataFrame,
    summary: pd.DataFrame,
    *,
    figures: Path,
    html: Path,
    markdown: Path,
    published: Path,
    diagnosis: Diagnosis | None = None,
    archives: Mapping[str, str] | None = None,
    compared: Compared | None = None,
) -> None:
    """Write the report: a page, a plain document in Markdown, and a page of published reports.

    Args:
        measurements: as read_measurements gives them, all suites.
        summary: as read_summary gives it, all suites.
        figures: folder that holds <suite>-{throughput,speedup}.svg and published/; the pages embed
            them, the document links to them.
        html, markdown, published: the files to write; the last is the page of published reports.
        archives: the archives of the suites, each with its SHA-256.

    Raises:
        ReperfError: a file cannot be written.
    """
    context = gather(report, records, measurements, summary, diagnosis, archives=archives)
    root = f"{relpath('.', Path(PAGES[0]).parent)}/"
    write_whole(html, render_html(context, figures, root, compared))
    write_whole(markdown, render_markdown(context, relpath(figures, markdown.parent)))
    write_whole(published, render_published(figures))
