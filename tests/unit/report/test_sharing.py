"""The table of cells that share a model, beside data parallel."""

import pandas as pd
import pytest
from reperf.config import Run
from reperf.drawing.figures import draw_suites_epochs
from reperf.layout import EPOCHS
from reperf.records.run_record import RunRecord

from tests.unit.report.benchmarks import Benchmark, benchmark_of, record_of, row_of

SUITE = {
    "name": "alexnet",
    "workload": "alexnet",
    "precision": "fp32",
    "batch_size": 256,
    "input": "synthetic",
    "systems": [
        "jax",
        "pytorch",
        {"system": "pipedream", "parallel": {"pipeline": [7, 1]}},
        {"system": "fsdp", "parallel": {"shard": 8}},
    ],
}
RATES = {"jax": 9000.0, "pytorch": 7000.0, "pipedream": 9800.0, "fsdp": 3500.0}


def shared(folder, **changes: object) -> Benchmark:
    """A benchmark of one run a cell, whose last device takes most memory."""

    def record(run: Run) -> RunRecord:
        return record_of(run, peak_memory_bytes=(*[2**30] * (run.world_size - 1), 3 * 2**30))

    def row(one: RunRecord) -> dict:
        return row_of(one, RATES[one.run.system])

    return benchmark_of(folder, {"repeats": 1, "suites": [SUITE]} | changes, record, row)


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory) -> Benchmark:
    return shared(tmp_path_factory.mktemp("shared"), device="cuda", topologies=["1n8g"])


@pytest.fixture(scope="module")
def by_system(benchmark):
    return {one.cell.row.system: one for one in benchmark.context.suites[0].shared}


def test_a_cell_has_its_ratio_to_data_parallel_its_epoch_and_the_memory_of_its_stages(by_system):
    """An epoch is of 1,281,167 images: 625 batches of 2,048, or 714 of 1,792."""
    assert list(by_system) == ["pytorch", "pipedream", "fsdp"]
    assert by_system["pytorch"].ratio is None
    ratios = by_system["pipedream"].ratio, by_system["fsdp"].ratio
    assert ratios == pytest.approx((1.4, 0.5))  # in the same framework
    assert by_system["pytorch"].cell.row.epoch_seconds == pytest.approx(625 * 2048 / 7000)
    assert by_system["pipedream"].cell.row.epoch_seconds == pytest.approx(714 * 1792 / 9800)
    updates = {system: one.updates for system, one in by_system.items()}
    assert updates == {"pytorch": "625", "pipedream": "714 + 4,998", "fsdp": "625"}
    assert by_system["pipedream"].memory == "1.0 GiB + 3.0 GiB"
    assert by_system["fsdp"].memory == "3.0 GiB"


def test_a_figure_of_epochs_is_drawn(benchmark):
    folder = benchmark.figures.parent
    draw_suites_epochs(folder / "summary.csv", folder / "drawn")
    assert "<svg" in (folder / f"drawn-{EPOCHS}.svg").read_text()


def test_published_epochs_of_the_same_training_stand_beside_the_measured_ones(benchmark):
    others = benchmark.context.suites[0].epochs_of_others
    assert [(one.series, one.epoch_seconds, one.gpu_memory) for one in others] == [
        ("AlexNet, data parallel, 1,000,000 synthetic images", 144.396, 4679),
        ("AlexNet, 2 stages on 7 and 1 GPUs, 1,000,000 synthetic images", 102.291, 5047),
    ]
    page = benchmark.pages[0]
    assert "5,047 MiB" in page
    assert "seconds of an epoch" in page


def test_devices_that_share_cpus_say_so_and_have_no_speedup(tmp_path):
    pipeline = {"system": "pipedream", "parallel": {"pipeline": [2, 1]}}
    small = SUITE | {"systems": ["pytorch", pipeline], "topologies": ["1n1g", "1n2g", "1n3g"]}
    there = {"device": "cpu", "share_cpus": True, "hardware": {"shared": {"1n3g": 2}}}
    benchmark = shared(tmp_path, suites=[small], **there)
    [suite] = benchmark.context.suites
    rows = {(cell.row.system, cell.row.topology): cell.row for cell in suite.cells}
    speedups = [rows["pytorch", topology].speedup for topology in small["topologies"]]
    assert speedups == pytest.approx([1, 1, float("nan")], nan_ok=True)
    for system in "pytorch", "pipedream":
        row = rows[system, "1n3g"]
        assert row.throughput_median == RATES[system]
        assert pd.isna([row.speedup, row.efficiency, row.per_device, row.flop_utilisation]).all()
        assert row.shared_cpus == 2
    assert [one.ratio for one in suite.shared] == [None, pytest.approx(1.4)]
    assert suite.title.endswith(", on CPUs (3 devices share 2 CPUs)")
    for page in benchmark.pages:
        assert page.count("3 devices share 2 CPUs") >= 3
        assert "Shared CPUs: " in page
