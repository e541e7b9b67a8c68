"""The whole way with a real framework: PyTorch trains a small ResNet-50 on real JPEGs."""

import json
import re

import pandas as pd
import pytest
from reperf.builds import LockBuild
from reperf.systems import load_systems

from tests.helpers.small_benchmark import Benchmark


@pytest.fixture
def report(real_finished) -> Benchmark:
    return Benchmark(real_finished)


def test_pytorch_trains_on_one_device_and_on_two_and_its_records_say_how(report: Benchmark):
    runs = pd.read_csv(report.folder / "results/measurements.csv")
    assert list(runs["status"]) == ["ok", "ok"]
    pins = LockBuild(load_systems()["pytorch"], "cpu").lock.read_text().splitlines()
    losses = []
    for run in runs.itertuples():
        record = json.loads((report.folder / run.log).with_name("run.json").read_text())
        packages = record["environment"]["packages"]
        assert {f"{name}=={version.partition('+')[0]}" for name, version in packages.items()} <= {
            *pins
        }
        assert record["environment"]["framework"].startswith("2.")
        assert min(record["peak_memory_bytes"]) > 3 * 4 * 25_557_032  # weights, gradients, momentum
        assert len(record["peak_memory_bytes"]) == int(run.topology[2])
        log = (report.folder / run.log).read_text()
        losses += map(float, re.findall(r'"iteration": 1, .*"loss": ([^,}]+)', log))
    assert len(losses) == 2
    assert all(6 < loss < 8 for loss in losses)  # near ln 1000, whatever the images


def test_the_archive_gives_the_tables_again_and_another_call_has_nothing_to_do(report, tmp_path):
    table = "results/suites/small/summary.csv"
    report.said("reperf", "archive", "rebuild", "archive/small.zip", "--to", str(tmp_path))
    assert (tmp_path / table).read_bytes() == (report.folder / table).read_bytes()
    assert report.planned() == {}
