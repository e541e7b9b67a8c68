"""What an archive says of itself to people: a README, and the page of its suite."""

from collections.abc import Sequence
from pathlib import Path
from string import Template

from reperf import __version__
from reperf.config import Report
from reperf.layout import FIGURES, tables_of
from reperf.member_names import PAGE, README
from reperf.records.run_record import RunRecord
from reperf.report.context import gather
from reperf.report.html import render_html
from reperf.tables import read_measurements, read_summary
from reperf.text import printable

_README = Path(__file__).with_name("readme.txt")


def pages(report: Report, records: Sequence[RunRecord]) -> dict[str, bytes]:
    """Name in the archive -> content, made from the tables and figures in the working folder.

    The published numbers of others are left out: an archive holds what was measured.

    Args:
        report: of the archived suite alone, as the archive holds it.
        records: of the suite's runs.
    """
    (suite,) = report.suites
    tables = tables_of(suite.name)
    context = gather(
        report,
        records,
        read_measurements(tables[0]),
        read_summary(tables[1]),
        published=False,
        tables=tables,
    )
    commits = context.commits
    told = {
        "title": printable(f"{report.title}: {suite.name}"),
        "profile": "--profile slurm " if report.cluster else "",
        "version": __version__,
        "pinned": f": the one at {commits[0].rstrip('+')}" if commits else "",
        "commits": f", its runs at commit {' and '.join(commits)}" if commits else "",
    }
    return {
        README: Template(_README.read_text(encoding="utf-8")).substitute(told).encode(),
        PAGE: render_html(context, Path(FIGURES).parent).encode(),
    }
