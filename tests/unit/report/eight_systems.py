"""Eight systems on up to 32 GPUs, with failures and marks: invented numbers."""

import random
from pathlib import Path
from typing import Any

import yaml
from reperf.config import Run, load_report
from reperf.host import Gpu, Host
from reperf.records.run_record import Load

from tests.helpers.small_benchmark import ROOT
from tests.unit.report.benchmarks import Benchmark, benchmark_of, record_of, row_of

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
WAITED = {"tensorflow2": 0.31}
OTHER_WORK = {"mxnet": 0.08}
GPUS = tuple(
    Gpu(name="Tesla V100-SXM2-16GB", memory_bytes=16 << 30, uuid=f"GPU-{k}") for k in range(8)
)
HOST = Host(
    hostname="node1",
    cpu="Intel(R) Xeon(R) Gold 5118 CPU @ 2.30GHz",
    cores=48,
    memory_bytes=384 << 30,
    os="Ubuntu 16.04.4 LTS",
    kernel="4.4.0",
    gpus=GPUS,
    driver="440.33.01",
    cuda="10.2",
)


def suite(name: str, **changes: Any) -> dict[str, Any]:
    usual = {"workload": "resnet50", "precision": "fp32", "batch_size": 128}
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
    amp = {"precision": "amp", "batch_size": 256}
    asked = {
        "title": "Eight systems, four nodes",
        "topologies": ["1n1g", "1n8g", "2n8g", "4n8g"],
        "repeats": repeats,
        "device": device,
        "data": {"name": "imagenet", "parts": 32},
        "suites": [suite(name, **amp if "amp" in name else {}) for name in names],
    }
    return _benchmark(folder, asked, busy)


def dlperf(folder: Path) -> Benchmark:
    """All twelve suites of DLPerf's report."""
    text = (ROOT / "reports/dlperf.yaml").read_text(encoding="utf-8")
    return _benchmark(folder, yaml.safe_load(text) | {"device": "cuda"})


def _benchmark(folder: Path, asked: dict[str, Any], busy: float = 0.0) -> Benchmark:
    report = load_report(asked | {"cluster": {"nodes": 4, "devices_per_node": 8}})
    chance = random.Random(7)
    cells = [cell for one in report.suites for cell in report.cells(one)]
    cells = [cell.model_copy(update={"unsupported": None}) for cell in cells]
    runs = [run for cell in cells for run in cell.runs]
    records = [_record(run, busy) for run in runs]
    rows, steps = [], random.Random(8)
    for record in records:
        throughput = _throughput(record.run, chance)
        row = row_of(record, throughput, WAITED.get(record.run.system))
        rows.append(row | (_more(row, record.run, steps) if record.status == "ok" else {}))
    return benchmark_of(folder, report, cells, records, rows)


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


def _record(run: Run, busy: float):
    status, reason = "ok", ""
    if run.system == "paddlepaddle" and run.nodes > 1:
        status, reason = "failed", "rank 3: NCCL connection closed by remote peer"
    if run.precision == "amp" and run.system == "tensorflow2" and run.nodes == 4:
        status, reason = "oom", "CUDA out of memory on rank 0"
    load = Load(
        average=1.5,
        before=busy,
        during=max(busy, OTHER_WORK.get(run.system, 0.01)),
        gpu_processes=0,
    )
    return record_of(run, status=status, reason=reason, host=HOST, load=load)


def _throughput(run: Run, chance: random.Random) -> float:
    doublings = run.world_size.bit_length() - 1
    rate = ONE_GPU[run.system] * run.world_size * KEPT.get(run.system, 0.985) ** doublings
    if run.precision == "amp":
        rate *= 2.8 if run.system != "oneflow" else 2.87
    wide = 0.12 if run.system == "pytorch" and run.nodes == 2 else 0.006
    return rate * chance.gauss(1, wide)
