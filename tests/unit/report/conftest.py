"""A report with a bit of everything: good, partial and failed cells, GPUs, hostile names."""

import pytest
from reperf.config import Run, load_report
from reperf.host import Environment
from reperf.records.run_record import ComputedIn, LastHeard, Load, RunRecord
from reperf.report import write_report

from tests.unit.report.benchmarks import (
    Benchmark,
    Page,
    benchmark_of,
    draw_figures,
    record_of,
    row_of,
)
from tests.unit.report.eight_systems import HOST

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
# What share of the CPUs' time others took meanwhile; nobody looked beside oneflow.
OTHER_WORK = {"pytorch": 0.012, "paddlepaddle": 0.25}
FLOAT32 = ComputedIn(compute="float32", weights="float32")
FLOAT16 = ComputedIn(compute="float16", weights="float32", loss_scale=128)
LINKS = "        GPU0    GPU1\nGPU0     X      NV1\nGPU1    NV1      X\n"


@pytest.fixture(scope="session")
def big_benchmark(tmp_path_factory) -> Benchmark:
    """GPUs on four nodes, with cells that ended in every way."""
    report = load_report(CONFIG)
    cells = [
        cell.model_copy(
            update={"unsupported": None if cell.runs[0].system in ONE_DEVICE else "not built yet"}
        )
        for suite in report.suites
        for cell in report.cells(suite)
    ]
    records = [_record(run) for cell in cells if not cell.unsupported for run in cell.runs]
    rows = [row_of(one, _throughput(one.run), WAITED.get(one.run.system)) for one in records]
    folder = tmp_path_factory.mktemp("big")
    benchmark = benchmark_of(folder, report, cells, records, rows)
    draw_figures(benchmark)
    return benchmark


@pytest.fixture(scope="session")
def written(big_benchmark: Benchmark) -> tuple[str, str, str]:
    """The page and the document of the benchmark as it is, and the page of published reports."""
    it, folder = big_benchmark, big_benchmark.figures.parent
    html, markdown = folder / "results/report.html", folder / "results/report.md"
    given = it.report, it.records, it.measurements, it.summary
    published = folder / "results/published.html"
    files = {"html": html, "markdown": markdown, "published": published}
    write_report(*given, figures=it.figures, **files)
    html, markdown, published = (
        path.read_text(encoding="utf-8") for path in (html, markdown, published)
    )
    return html, markdown, published


@pytest.fixture(scope="session")
def plain_pages(written) -> tuple[str, str]:
    return written[:2]


@pytest.fixture(scope="session")
def published_page(written) -> Page:
    return Page(written[2])


@pytest.fixture(scope="session")
def page(plain_pages) -> Page:
    return Page(plain_pages[0])


def _ending(run: Run) -> tuple[str, str]:
    """How a run ended: its status and reason."""
    if run.system == "paddlepaddle" and run.nodes > 1:
        return "failed", f"rank 3: {HOSTILE}"
    if run.variant and run.nodes == 4:
        return "oom", "CUDA out of memory on rank 0"
    if run.system == "oneflow" and run.nodes == 4 and run.repeat == 2:
        return "timeout", "no sign of life for 1800 s"
    return "ok", ""


def _throughput(run: Run) -> float:
    faster = 2.8 if run.precision == "amp" else 1
    return ONE_DEVICE[run.system] * run.world_size**0.97 * (1 + run.repeat / 1000) * faster


def _record(run: Run) -> RunRecord:
    status, reason = _ending(run)
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
        host=HOST.model_copy(update={"hostname": f"node{run.nodes}", "topology_matrix": LINKS}),
        exit_code=0 if status == "ok" else 1,
        last_heard=(LastHeard(rank=0, iteration=40, seconds=61.5),),
        peak_memory_bytes=(14 * 2**30,) * run.world_size,
        computed_in=FLOAT32 if run.precision == "fp32" else FLOAT16,
        loader_threads=6,
        settings={"cudnn.benchmark": True, "TF_SYNC_ON_FINISH": "0"},
        load=Load(average=1.5, before=0.01, during=OTHER_WORK.get(run.system), gpu_processes=0),
    )
