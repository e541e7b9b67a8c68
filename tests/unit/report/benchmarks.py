"""Benchmarks that nobody ran, of which reports are made; and pages as parsers see them.

The numbers are invented: eight systems on up to 32 GPUs, with failures and marks.
"""

import random
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any, Self

import pandas as pd
import yaml
from reperf.config import Report, Run, load_report
from reperf.drawing.figures import draw_suite
from reperf.host import Environment, Gpu, Host
from reperf.layout import EPOCHS, FIGURE_KINDS
from reperf.measuring.measure import Measurement
from reperf.measuring.suite_rows import record_columns
from reperf.measuring.summary import summarise
from reperf.published import load_tables
from reperf.records.diagnosis import Diagnosis
from reperf.records.run_record import ComputedIn, LastHeard, Load, RunRecord
from reperf.report.context import Context, gather
from reperf.report.html import render_html
from reperf.report.markdown import render_markdown
from reperf.tables import MEASUREMENTS, SUMMARY, read_measurements, read_summary, write_table

from tests.helpers import runs
from tests.helpers.small_benchmark import ROOT

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
    archives: dict[str, str] | None = None

    def but(self, **changes: Any) -> Self:
        return replace(self, **changes)

    def with_cells(self, **columns: Any) -> Self:
        return replace(self, summary=self.summary.assign(**columns))

    def with_runs(self, **columns: Any) -> Self:
        return replace(self, measurements=self.measurements.assign(**columns))

    def with_records(self, change: Callable[[RunRecord], dict[str, Any]]) -> Self:
        """The benchmark with some fields of each record changed."""
        records = [record.model_copy(update=change(record)) for record in self.records]
        return replace(self, records=records)

    def with_suites(self, **changes: Any) -> Self:
        """The benchmark with some fields of each suite changed."""
        suites = tuple(suite.model_copy(update=changes) for suite in self.report.suites)
        return replace(self, report=self.report.model_copy(update={"suites": suites}))

    @property
    def context(self) -> Context:
        tables = self.measurements, self.summary
        return gather(self.report, self.records, *tables, self.diagnosis, archives=self.archives)

    @property
    def pages(self) -> tuple[str, str]:
        """The HTML and the Markdown."""
        context = self.context
        return render_html(context, self.figures, "../"), render_markdown(context, "figures")

    @property
    def texts(self) -> tuple[str, str]:
        """What a reader sees of both."""
        return texts_of(self.pages)


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


def texts_of(pages: tuple[str, str]) -> tuple[str, str]:
    """An HTML and a Markdown page without their markup, in one line each."""
    html, markdown = pages
    plain = re.sub(r"\\(?=[^a-z0-9\s])|\*\*", "", markdown)
    return Page(html).text, " ".join(plain.split())


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


def benchmark_of(
    folder: Path,
    asked: dict[str, Any],
    record: Callable[[Run], RunRecord],
    row: Callable[[RunRecord], dict],
    lacks: Collection[str] | None = None,
) -> Benchmark:
    """The tables of a report's runs, and small figures in the place of all that it embeds.

    To draw the published ones alone takes a quarter of a minute; test_figures.py has real ones.

    Args:
        asked: the configuration.
        record, row: give the record of a run, and its row of measurements.csv.
        lacks: the systems that cannot run, while all others can; None: as the configuration says.
    """
    report = load_report(asked)
    cells = [cell for suite in report.suites for cell in report.cells(suite)]
    if lacks is not None:
        why = ["not built yet" if cell.runs[0].system in lacks else None for cell in cells]
        pairs = zip(cells, why, strict=True)
        cells = [cell.model_copy(update={"unsupported": reason}) for cell, reason in pairs]
    records = [record(run) for cell in cells if not cell.unsupported for run in cell.runs]
    write_table(folder / "measurements.csv", map(row, records), MEASUREMENTS)
    measurements = read_measurements(folder / "measurements.csv")
    write_table(folder / "summary.csv", summarise(measurements, cells), SUMMARY)
    summary, figures = read_summary(folder / "summary.csv"), folder / "figures"
    (figures / "published").mkdir(parents=True)
    names = [one.name for one in report.suites] + [f"published/{one.id}" for one in load_tables()]
    for name, kind in product(names, (*FIGURE_KINDS, EPOCHS)):
        (figures / f"{name}-{kind}.svg").write_text("<svg width='1'></svg>")
    return Benchmark(report, records, measurements, summary, figures)


def draw_figures(benchmark: Benchmark, kinds: Iterable[str] = FIGURE_KINDS) -> None:
    """Draw figures of its suites in the place of the small ones."""
    folder = benchmark.figures.parent
    for name in benchmark.summary["suite"].unique():
        files = folder / f"{name}-measurements.csv", folder / f"{name}-summary.csv"
        tables = (benchmark.measurements, MEASUREMENTS), (benchmark.summary, SUMMARY)
        for file, (table, columns) in zip(files, tables, strict=True):
            write_table(file, table[table["suite"] == name].to_dict("records"), columns)
        draw_suite(*files, benchmark.figures / name, kinds)


ONE_GPU = {
    "ngc-pytorch": 408.0,
    "oneflow": 398.0,
    "ngc-mxnet": 389.0,
    "mxnet": 387.0,
    "ngc-tensorflow1": 380.0,
    "paddlepaddle": 352.0,
    "pytorch": 348.0,
    "tensorflow2": 321.0,
}
"""Images a second."""
KEPT = {"tensorflow2": 0.90, "paddlepaddle": 0.95, "pytorch": 0.96}
"""What is left of the throughput where the number of GPUs doubles, over twice of it."""
WAITED = {"pytorch": 0.0375, "paddlepaddle": 0.25}
"""What share of its time each waited for data; nobody knows it of the others."""
OTHER_WORK = {"paddlepaddle": 0.25}
"""What share of the CPUs' time others took meanwhile; 0.01 where nothing is said."""
HOSTILE = "<script>alert('x')</script> | **bold** & `code`"
FLOAT32 = ComputedIn(compute="float32", weights="float32")
FLOAT16 = ComputedIn(compute="float16", weights="float32", loss_scale=128)
LINKS = "        GPU0    GPU1\nGPU0     X      NV1\nGPU1    NV1      X\n"
HOST = Host(
    hostname="node1",
    cpu="Intel(R) Xeon(R) Gold 5118 CPU @ 2.30GHz",
    cores=48,
    memory_bytes=384 << 30,
    os="Ubuntu 16.04.4 LTS",
    kernel="4.4.0",
    gpus=tuple(
        Gpu(name="Tesla V100-SXM2-16GB", memory_bytes=16 << 30, uuid=f"GPU-{k}") for k in range(8)
    ),
    driver="440.33.01",
    cuda="10.2",
    topology_matrix=LINKS,
)


def asked(*suites: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The configuration of a report on four nodes."""
    usual = {
        "title": "Eight systems & a <b>machine</b>",
        "topologies": ["1n1g", "1n8g", "2n8g", "4n8g"],
        "repeats": 7,
        "device": "cuda",
        "data": {"name": "imagenet", "parts": 32},
    }
    return usual | changes | {"suites": suites}


def suite(name: str, **changes: Any) -> dict[str, Any]:
    usual = {"workload": "resnet50", "precision": "fp32", "batch_size": 128}
    if "amp" in name:
        usual |= {"precision": "amp", "batch_size": 256}
    return {"name": name, "systems": list(ONE_GPU)} | usual | changes


def eight_systems(
    folder: Path, suites: int = 1, repeats: int = 7, busy: float = 0.0, device: str = "cuda"
) -> Benchmark:
    """A benchmark of them.

    Args:
        suites: how many.
        busy: what share of the CPUs' time other work took beside all runs.
    """
    names = ("resnet50-fp32", "resnet50-amp", *(f"suite-{k}" for k in range(suites)))[:suites]
    given = asked(*map(suite, names), repeats=repeats, device=device)
    return invented(folder, given, busy=busy)


def dlperf(folder: Path) -> Benchmark:
    """All twelve suites of DLPerf's report."""
    text = (ROOT / "reports/dlperf.yaml").read_text(encoding="utf-8")
    return invented(folder, yaml.safe_load(text) | {"device": "cuda"})


def invented(
    folder: Path,
    given: dict[str, Any],
    *,
    busy: float = 0.0,
    lacks: Collection[str] = (),
    metered: bool = True,
) -> Benchmark:
    """The benchmark of a configuration.

    Args:
        metered: whether the times of steps, the energy and the rate of the GPUs are known.
    """
    chance, steps = random.Random(7), random.Random(8)

    def row(record: RunRecord) -> dict[str, Any]:
        row = row_of(record, _throughput(record.run, chance), WAITED.get(record.run.system))
        fine = metered and record.status == "ok"
        return row | (_more(row, record.run, steps) if fine else {})

    given = given | {"cluster": {"nodes": 4, "devices_per_node": 8}}
    return benchmark_of(folder, given, lambda run: _record(run, busy), row, lacks)


def _more(row: dict[str, Any], run: Run, chance: random.Random) -> dict[str, Any]:
    """The steps of a run, the energy that it took, and what its GPUs can reach."""
    ms = 1000 * run.global_batch / row["throughput"]
    steps = {at: ms * chance.gauss(1, 0.01) for at in range(10, 121, 10)}
    steps[10] *= 4
    steps[70] *= 1.5 if run.system == "mxnet" and run.repeat == 3 else 1
    return {
        "step_times": " ".join(f"{at}:{took:.5g}" for at, took in steps.items()),
        "joules": row["seconds"] * run.world_size * chance.gauss(280, 3),
        "matrix_rate": 14e12,
    }


def _ending(run: Run) -> tuple[str, str]:
    """How a run ended: its status and reason."""
    if run.system == "paddlepaddle" and run.nodes > 1:
        return "failed", f"rank 3: {HOSTILE}"
    if run.nodes == 4 and run.precision == "amp" and (run.variant or run.system == "tensorflow2"):
        return "oom", "CUDA out of memory on rank 0"
    if run.system == "oneflow" and run.nodes == 4 and run.repeat == 2:
        return "timeout", "no sign of life for 1800 s"
    return "ok", ""


def _record(run: Run, busy: float) -> RunRecord:
    status, reason = _ending(run)
    during = max(busy, OTHER_WORK.get(run.system, 0.01))
    return record_of(
        run,
        status=status,
        reason=reason,
        command=("torchrun", f"--nnodes={run.nodes}", "train.py", "--title", HOSTILE),
        environment=Environment(
            lock=f"envs/{run.system}.txt",
            lock_sha256="ab" * 32,
            python="3.11.7",
            packages={"torch": "2.13.0", "numpy": "2.4.6", "oneflow": "0.9.0"},
            framework="2.13.0",
        ),
        git_commit="0123456789abcdef0123456789abcdef01234567",
        git_dirty=run.repeat == 7,
        host=HOST.model_copy(update={"hostname": f"node{run.nodes}"}),
        exit_code=0 if status == "ok" else 1,
        last_heard=(LastHeard(rank=0, iteration=40, seconds=61.5),),
        peak_memory_bytes=(14 * 2**30,) * run.world_size,
        computed_in=FLOAT32 if run.precision == "fp32" else FLOAT16,
        loader_threads=6,
        settings={"cudnn.benchmark": True, "TF_SYNC_ON_FINISH": "0"},
        load=Load(average=1.5, before=max(busy, 0.01), during=during, gpu_processes=0),
    )


def _throughput(run: Run, chance: random.Random) -> float:
    doublings = run.world_size.bit_length() - 1
    rate = ONE_GPU[run.system] * run.world_size * KEPT.get(run.system, 0.985) ** doublings
    if run.precision == "amp":
        rate *= 2.8 if run.system != "oneflow" else 2.87
    wide = 0.12 if run.system == "tensorflow2" and run.nodes == 2 else 0.006
    return rate * chance.gauss(1, wide)
