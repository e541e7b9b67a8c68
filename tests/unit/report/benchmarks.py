"""What the tests of the report share: benchmarks that nobody ran, pages as parsers see them."""

from dataclasses import dataclass, replace
from functools import cached_property
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any, Self

import pandas as pd
from reperf.config import Report, Run
from reperf.drawing.figures import draw_suite
from reperf.host import Environment
from reperf.layout import EPOCHS, FIGURE_KINDS
from reperf.measuring.measure import Measurement
from reperf.measuring.suite_rows import record_columns
from reperf.measuring.summary import summarise
from reperf.published import load_tables
from reperf.records.diagnosis import Diagnosis
from reperf.records.run_record import RunRecord
from reperf.report.context import Context, gather
from reperf.report.html import render_html
from reperf.report.markdown import render_markdown
from reperf.tables import MEASUREMENTS, SUMMARY, read_measurements, read_summary, write_table

from tests.helpers import runs

VOID = {"meta", "link", "input", "br"}


@dataclass(frozen=True)
class Benchmark:
    """What a report is made of."""

    report: Report
    records: list[RunRecord]
    measurements: pd.DataFrame
    summary: pd.DataFrame
    figures: Path
    diagnosis: Diagnosis | None = None

    def but(self, **changes: Any) -> Self:
        return replace(self, **changes)

    def with_cells(self, **columns: Any) -> Self:
        return replace(self, summary=self.summary.assign(**columns))

    def with_runs(self, **columns: Any) -> Self:
        return replace(self, measurements=self.measurements.assign(**columns))

    @property
    def context(self) -> Context:
        tables = self.measurements, self.summary
        return gather(self.report, self.records, *tables, self.diagnosis)

    @property
    def pages(self) -> tuple[str, str]:
        """The HTML and the Markdown."""
        context = self.context
        return render_html(context, self.figures, "../"), render_markdown(context, "figures")


class Page(HTMLParser):
    """A page's elements and its text; an element that is not closed in order fails."""

    def __init__(self, html: str):
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    @cached_property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def record_of(run: Run, **changes: Any) -> RunRecord:
    """The record of a run that went well, on a day of its own, with some fields changed."""
    usual = {
        "environment": Environment(lock="a", lock_sha256="ab" * 32, python="3.11.7", packages={}),
        "started": f"2026-11-2{run.repeat}T08:15:02.123456+00:00",
        "ended": f"2026-11-2{run.repeat}T08:20:02.123456+00:00",
        "seconds": 300.0,
        "log_sha256": f"{run.repeat:064x}",
    }
    return runs.record_of(run, **usual | changes)


def row_of(record: RunRecord, throughput: float, waited: float | None = None) -> dict:
    """A run's row of measurements.csv; the numbers stand there if it went well."""
    run, fine = record.run, record.status == "ok"
    samples = 100 * run.global_batch
    measured = {"first": 20, "last": 120, "samples": samples, "method": "window"}
    measured |= {"throughput": throughput, "seconds": samples / throughput, "waited": waited}
    said = {name: getattr(record, name) for name in ("status", "reason", "log_sha256")}
    shape = {"unit": "images/s", "global_batch": run.global_batch, "world_size": run.world_size}
    row = dict.fromkeys(MEASUREMENTS) | run.identity | run.setting | said | shape
    row |= {"repeat": run.repeat, "log": f"{run.folder}/train.log"}
    row |= record_columns(record, Measurement("log", "mllog", "ok" if fine else "refused"))
    return row | measured if fine else row


def benchmark_of(folder: Path, report: Report, cells: list, records: list, rows: list) -> Benchmark:
    """The tables of some runs, and small figures in the place of all that their report embeds.

    To draw the published ones alone takes a quarter of a minute; test_figures.py has real ones.
    """
    write_table(folder / "measurements.csv", rows, MEASUREMENTS)
    measurements = read_measurements(folder / "measurements.csv")
    write_table(folder / "summary.csv", summarise(measurements, cells), SUMMARY)
    summary, figures = read_summary(folder / "summary.csv"), folder / "figures"
    (figures / "published").mkdir(parents=True)
    names = [one.name for one in report.suites] + [f"published/{one.id}" for one in load_tables()]
    for name, kind in product(names, (*FIGURE_KINDS, EPOCHS)):
        (figures / f"{name}-{kind}.svg").write_text("<svg width='1'></svg>")
    return Benchmark(report, records, measurements, summary, figures)


def draw_figures(benchmark: Benchmark) -> None:
    """Draw the figures of its suites in the place of the small ones."""
    folder = benchmark.figures.parent
    for name in benchmark.summary["suite"].unique():
        files = folder / f"{name}-measurements.csv", folder / f"{name}-summary.csv"
        tables = (benchmark.measurements, MEASUREMENTS), (benchmark.summary, SUMMARY)
        for file, (table, columns) in zip(files, tables, strict=True):
            write_table(file, table[table["suite"] == name].to_dict("records"), columns)
        draw_suite(*files, benchmark.figures / name)
