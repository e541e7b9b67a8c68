"""A report with a bit of everything: good, partial and failed cells, GPUs, hostile names."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from reperf.config import Report, Run, load_report
from reperf.drawing.figures import draw_suite
from reperf.measuring.measure import Measurement
from reperf.measuring.recorded import recorded
from reperf.measuring.summary import summarise
from reperf.report import write_report
from reperf.tables import (
    MEASUREMENTS,
    SUMMARY,
    read_measurements,
    read_summary,
    write_table,
)
from reperf.training.record import ComputedIn, Environment, Gpu, Host, LastHeard, Load, RunRecord

HOSTILE = "<script>alert('x')</script> | **bold** & `code`"

CONFIG = {
    "title": "Eight systems & a <b>machine</b>",
    "topologies": ["1n1g", "1n8g", "2n8g", "4n8g"],
    "repeats": 7,
    "device": "cuda",
    "cluster": {"nodes": 4, "devices_per_node": 8},
    "data": {"name": "imagenet", "parts": 32},
    "suites": [
        {
            "name": "resnet50-fp32",
            "workload": "resnet50",
            "precision": "fp32",
            "batch_size": 128,
            "systems": ["oneflow", "ngc-mxnet", "pytorch", "paddlepaddle"],
        },
        {
            "name": "resnet50-amp",
            "workload": "resnet50",
            "precision": "amp",
            "batch_size": 256,
            "systems": [
                "pytorch",
                {"system": "pytorch", "variants": "dynamic-loss-scale"},
                {"system": "ngc-tensorflow1", "variants": "xla", "batch_size": 224},
            ],
        },
    ],
}

# What one device did, in images/s; systems that are not here count as not built.
ONE_DEVICE = {"oneflow": 397.64, "pytorch": 348.62, "paddlepaddle": 352.72}

# What share of its time each waited for data; nobody knows it of oneflow.
WAITED = {"pytorch": 0.0375, "paddlepaddle": 0.25}


@dataclass(frozen=True)
class Benchmark:
    """What write_report is given."""

    report: Report
    records: list[RunRecord]
    measurements: pd.DataFrame
    summary: pd.DataFrame
    figures: Path

    def write(self, folder: Path) -> tuple[str, str]:
        """Write the report; returns the HTML and the Markdown."""
        html, markdown = folder / "results/report.html", folder / "results/report.md"
        write_report(
            self.report,
            self.records,
            self.measurements,
            self.summary,
            figures=self.figures,
            html=html,
            markdown=markdown,
        )
        return html.read_text(encoding="utf-8"), markdown.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def big_benchmark(tmp_path_factory, published_figures: Path) -> Benchmark:
    """GPUs on four nodes, with cells that ended in every way."""
    folder = tmp_path_factory.mktemp("big")
    report = load_report(CONFIG)
    rows, cells = [], []
    for suite in report.suites:
        for cell in report.cells(suite):
            why = None if cell.runs[0].system in ONE_DEVICE else "not built yet"
            cells.append(cell.model_copy(update={"unsupported": why}))
            rows += [] if why else [_measurement(run) for run in cell.runs]
    write_table(folder / "measurements.csv", rows, MEASUREMENTS)
    measurements = read_measurements(folder / "measurements.csv")
    rows = summarise(measurements, cells)
    write_table(folder / "summary.csv", rows, SUMMARY)
    for suite in report.suites:
        own = [row for row in rows if row["suite"] == suite.name]
        write_table(folder / f"{suite.name}.csv", own, SUMMARY)
        draw_suite(folder / f"{suite.name}.csv", folder / f"figures/{suite.name}")
    (folder / "figures/published").symlink_to(published_figures)
    return Benchmark(
        report=report,
        records=[_record(run) for cell in cells if not cell.unsupported for run in cell.runs],
        measurements=measurements,
        summary=read_summary(folder / "summary.csv"),
        figures=folder / "figures",
    )


@pytest.fixture(scope="session")
def plain_pages(big_benchmark: Benchmark, tmp_path_factory) -> tuple[str, str]:
    """The HTML and the Markdown of the benchmark as it is."""
    return big_benchmark.write(tmp_path_factory.mktemp("plain"))


def _ending(run: Run) -> tuple[str, str]:
    """How a run ended: its status and reason."""
    if run.system == "paddlepaddle" and run.nodes > 1:
        return "failed", f"rank 3: {HOSTILE}"
    if run.variant and run.nodes == 4:
        return "oom", "CUDA out of memory on rank 0"
    if run.system == "oneflow" and run.nodes == 4 and run.repeat == 2:
        return "timeout", "no sign of life for 1800 s"
    return "ok", ""


# What share of the CPUs' time others took meanwhile; nobody looked beside oneflow.
BESIDE = {"pytorch": 0.012, "paddlepaddle": 0.25}

FLOAT32 = ComputedIn(compute="float32", weights="float32")
FLOAT16 = ComputedIn(compute="float16", weights="float32", loss_scale=128)


def _measurement(run: Run) -> dict:
    status, reason = _ending(run)
    devices = run.world_size
    throughput = ONE_DEVICE[run.system] * devices**0.97 * (1 + run.repeat / 1000)
    throughput *= 2.8 if run.precision == "amp" else 1
    window = {"first": 20, "last": 120, "samples": 100 * run.global_batch, "method": "window"}
    measured = window | {
        "throughput": throughput,
        "seconds": 100 * run.global_batch / throughput,
        "waited": WAITED.get(run.system),
    }
    return (
        dict.fromkeys(MEASUREMENTS)
        | run.identity
        | {
            "repeat": run.repeat,
            "status": status,
            "reason": reason,
            "unit": "images/s",
            "global_batch": run.global_batch,
            "world_size": devices,
            "log": f"{run.folder}/train.log",
            "log_sha256": f"{run.repeat:064x}",
        }
        | recorded(_record(run), Measurement("log", "mllog", "ok" if status == "ok" else "refused"))
        | (measured if status == "ok" else {})
    )


def _record(run: Run) -> RunRecord:
    status, reason = _ending(run)
    gpu = {"name": "Tesla V100-SXM2-16GB", "memory_bytes": 16 * 2**30}
    return RunRecord(
        status=status,
        reason=reason,
        run=run,
        attempt=1,
        command=("torchrun", f"--nnodes={run.nodes}", "train.py", "--title", HOSTILE),
        variables={},
        environment=Environment(
            lock=f"envs/{run.system}.txt",
            lock_sha256="ab" * 32,
            python="3.11.7",
            packages={"torch": "2.13.0", "numpy": "2.4.6", "oneflow": "0.9.0"},
        ),
        git_commit="0123456789abcdef0123456789abcdef01234567",
        git_dirty=run.repeat == 7,
        host=Host(
            hostname=f"node{run.nodes}",
            cpu="Intel(R) Xeon(R) Gold 5118 CPU @ 2.30GHz",
            cores=48,
            memory_bytes=384 * 2**30,
            os="Ubuntu 16.04.4 LTS",
            kernel="4.4.0-116-generic",
            gpus=tuple(Gpu(uuid=f"GPU-{n}", **gpu) for n in range(8)),
            driver="440.33.01",
            cuda="10.2",
            topology_matrix="        GPU0    GPU1\nGPU0     X      NV1\nGPU1    NV1      X\n",
        ),
        started=f"2026-11-2{run.repeat}T08:15:02.123456+00:00",
        ended=f"2026-11-2{run.repeat}T08:20:02.123456+00:00",
        seconds=300.0,
        exit_code=0 if status == "ok" else 1,
        last_heard=(LastHeard(rank=0, iteration=40, seconds=61.5),),
        peak_memory_bytes=(14 * 2**30,) * run.world_size,
        computed_in=FLOAT32 if run.precision == "fp32" else FLOAT16,
        loader_threads=6,
        settings={"cudnn.benchmark": True, "TF_SYNC_ON_FINISH": "0"},
        load=Load(average=1.5, before=0.01, during=BESIDE.get(run.system), gpu_processes=0),
        log_sha256=f"{run.repeat:064x}",
    )
