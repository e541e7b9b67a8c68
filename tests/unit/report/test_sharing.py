"""The table of cells that share a model, beside data parallel."""

from pathlib import Path

import pandas as pd
import pytest
from reperf.config import Run, load_report
from reperf.drawing.figures import draw_suite, draw_suites_epochs
from reperf.measuring.measure import Measurement
from reperf.measuring.recorded import recorded
from reperf.measuring.summary import summarise
from reperf.report import write_report
from reperf.report.context import SuiteView, gather
from reperf.tables import (
    MEASUREMENTS,
    SUMMARY,
    read_measurements,
    read_summary,
    write_table,
)
from reperf.training.record import Environment, Host, RunRecord

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


def record(run: Run) -> RunRecord:
    return RunRecord(
        status="ok",
        run=run,
        attempt=1,
        command=(),
        variables={},
        environment=Environment(lock="a", lock_sha256="a" * 64, python="3.11", packages={}),
        git_commit=None,
        git_dirty=None,
        host=Host(hostname="a", cpu="b", cores=2, memory_bytes=1, os="c", kernel="d"),
        started="2026-11-25T00:00:00+00:00",
        ended="2026-11-25T00:01:00+00:00",
        seconds=60,
        exit_code=0,
        peak_memory_bytes=(*[2**30] * (run.world_size - 1), 3 * 2**30),
        log_sha256="",
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory, published_figures):
    """The one SuiteView of a report, and its HTML and its Markdown."""
    folder = tmp_path_factory.mktemp("written")
    return write(folder, published_figures, device="cuda", topologies=["1n8g"])


def write(tmp_path: Path, published: Path, **changes: object) -> tuple[SuiteView, list[str]]:
    report = load_report({"repeats": 1, "suites": [SUITE]} | changes)
    cells = list(report.cells(report.suites[0]))
    records = [record(run) for run in report.runs(report.suites[0])]
    rows = [
        dict.fromkeys(MEASUREMENTS)
        | one.run.identity
        | one.run.setting
        | {"repeat": 1, "status": "ok", "reason": "", "unit": "images/s", "log": "a"}
        | recorded(one, Measurement("a", "mllog", "ok"))
        | {"throughput": RATES[one.run.system], "global_batch": one.run.global_batch}
        | {"world_size": one.run.world_size, "first": 20, "last": 120, "method": "a"}
        | {"samples": 1.0, "seconds": 1.0}
        for one in records
    ]
    write_table(tmp_path / "m.csv", rows, MEASUREMENTS)
    measurements = read_measurements(tmp_path / "m.csv")
    write_table(tmp_path / "s.csv", summarise(measurements, cells), SUMMARY)
    summary, figures = read_summary(tmp_path / "s.csv"), tmp_path / "figures"
    draw_suite(tmp_path / "s.csv", figures / "alexnet")
    draw_suites_epochs(tmp_path / "s.csv", figures / "alexnet")
    (figures / "published").symlink_to(published)
    pages = tmp_path / "report.html", tmp_path / "report.md"
    asked = {"figures": figures, "html": pages[0], "markdown": pages[1]}
    write_report(report, records, measurements, summary, **asked)
    [suite] = gather(report, records, measurements, summary).suites
    return suite, [page.read_text(encoding="utf-8") for page in pages]


@pytest.fixture
def by_system(written):
    suite, _ = written
    return {one.cell.row.system: one for one in suite.shared}


def test_the_ratio_is_to_data_parallel_in_the_same_framework(by_system):
    assert list(by_system) == ["pytorch", "pipedream", "fsdp"]
    assert by_system["pytorch"].ratio is None
    assert by_system["pipedream"].ratio == pytest.approx(1.4)
    assert by_system["fsdp"].ratio == pytest.approx(0.5)


def test_an_epoch_is_of_whole_global_batches(by_system):
    # 1,281,167 images: 625 batches of 2,048, and 714 of 1,792.
    assert by_system["pytorch"].cell.row.epoch_seconds == pytest.approx(625 * 2048 / 7000)
    assert by_system["pipedream"].cell.row.epoch_seconds == pytest.approx(714 * 1792 / 9800)
    updates = {system: one.updates for system, one in by_system.items()}
    assert updates == {"pytorch": "625", "pipedream": "714 + 4,998", "fsdp": "625"}


def test_memory_is_each_stages_own(by_system):
    assert by_system["pipedream"].memory == "1.0 GiB + 3.0 GiB"
    assert by_system["fsdp"].memory == "3.0 GiB"


def test_published_epochs_of_the_same_training_stand_beside_the_measured_ones(written):
    suite, (html, markdown) = written
    published = [(one.series, one.epoch_seconds, one.gpu_memory) for one in suite.epochs_of_others]
    assert published == [
        ("AlexNet, data parallel, 1,000,000 synthetic images", 144.396, 4679),
        ("AlexNet, 2 stages on 7 and 1 GPUs, 1,000,000 synthetic images", 102.291, 5047),
    ]
    for page in html, markdown:
        assert "5,047 MiB" in page
        assert "seconds of an epoch" in page


def test_devices_that_share_cpus_say_so_and_have_no_speedup(tmp_path, published_figures):
    small = SUITE | {
        "systems": ["pytorch", {"system": "pipedream", "parallel": {"pipeline": [2, 1]}}]
    }
    there = {"shared": {"1n3g": 2}}
    asked = {"device": "cpu", "share_cpus": True, "topologies": ["1n1g", "1n2g", "1n3g"]}
    suite, (html, markdown) = write(
        tmp_path, published_figures, suites=[small], hardware=there, **asked
    )
    rows = {(cell.row.system, cell.row.topology): cell.row for cell in suite.cells}
    speedups = [rows["pytorch", topology].speedup for topology in asked["topologies"]]
    assert speedups == pytest.approx([1, 1, float("nan")], nan_ok=True)
    for system in "pytorch", "pipedream":
        row = rows[system, "1n3g"]
        assert row.throughput_median == RATES[system]
        assert pd.isna([row.speedup, row.efficiency, row.per_device, row.flop_utilisation]).all()
        assert row.shared_cpus == 2
    assert [one.ratio for one in suite.shared] == [None, pytest.approx(1.4)]
    assert suite.title.endswith(", on CPUs (3 devices share 2 CPUs)")
    for page in html, markdown:
        assert page.count("3 devices share 2 CPUs") > 4
        assert "Shared CPUs: " in page
