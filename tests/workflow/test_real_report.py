"""The whole way with a real framework: PyTorch trains a small ResNet-50 on real JPEGs."""

import json
import re
from pathlib import Path

import pandas as pd
from reperf.builds import LockBuild
from reperf.systems import load_systems


def test_pytorch_trains_on_two_devices_and_its_record_says_how(real_finished: Path):
    (run,) = pd.read_csv(real_finished / "results/measurements.csv").itertuples()
    assert (run.status, run.topology) == ("ok", "1n2g")
    record = json.loads((real_finished / run.log).with_name("run.json").read_text())
    environment = record["environment"]
    pins = LockBuild(load_systems()["pytorch"], "cpu").lock.read_text().splitlines()
    packages = environment["packages"].items()
    assert {f"{name}=={version.partition('+')[0]}" for name, version in packages} <= {*pins}
    assert environment["framework"].startswith("2.")
    assert len(record["peak_memory_bytes"]) == 2
    assert min(record["peak_memory_bytes"]) > 3 * 4 * 25_557_032  # weights, gradients, momentum
    log = (real_finished / run.log).read_text()
    (loss,) = re.findall(r'"iteration": 1, .*"loss": ([^,}]+)', log)
    assert 6 < float(loss) < 8  # near ln 1000, whatever the images
