"""Every framework convolves as numpy does and adds up over its ranks, as the doctor asks it to."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from reperf.builds import LockBuild
from reperf.config import Run, load_report
from reperf.doctor.trials import on_nodes, runs_to_try
from reperf.machine import resolve
from reperf.records.diagnosis import Trial
from reperf.systems import load_systems

from tests.systems.cases import each

LIBRARIES = {
    "oneflow": "OneFlow over TCP",
    "ngc-mxnet": "gloo (Horovod)",
    "ngc-tensorflow1": "gloo (Horovod)",
    "mxnet": "gloo (Horovod)",
    "tensorflow2": "TensorFlow over gRPC",
}


def tried(folder: Path, system: str, **changes: object) -> Trial:
    """Try a system on two of this machine's CPUs.

    Args:
        changes: of the run.
    """
    suite = {
        "name": "one",
        "workload": "resnet50",
        "precision": "fp32",
        "batch_size": 1,
        "input": "synthetic",
        "systems": [system],
    }
    report = resolve(load_report({"suites": [suite], "device": "cpu", "topologies": ["1n2g"]}))
    ((name, run),) = runs_to_try(report).items()
    run = Run(**{**on_nodes(report, run, 1).model_dump(), **changes})
    asked = json.dumps({"runs": {name: run.model_dump()}, "cluster": None, "reached": {}})
    answer = subprocess.run(
        [sys.executable, "-m", "reperf.doctor.trials", asked],
        check=True,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
    )
    (trial,) = json.loads(answer.stdout)
    return Trial(**trial)


@pytest.mark.weekly
@each()
def test_two_devices_compute_and_add_up_and_one_is_tried_too(system, trainer_of):
    trial = tried(trainer_of(system).folder, system)
    assert trial.trouble == ""
    assert (trial.world_size, trial.devices) == (2, ("cpu", "cpu"))
    assert trial.convolution_error < 1e-5
    assert trial.library == LIBRARIES.get(system, "gloo")
    assert [transfer.bytes for transfer in trial.transfers] == [10**6, 16 * 10**6, 64 * 10**6]
    assert trial.bandwidth > 0
    assert trial.matrix_rates["float32"] > 0
    alone = tried(trainer_of(system).folder, system, topology="1n1g")
    assert (alone.trouble, alone.devices, alone.transfers) == ("", ("cpu",), ())


def test_what_does_not_start_is_one_line(tmp_path):
    trial = tried(tmp_path, "pytorch")
    assert f"{LockBuild(load_systems()['pytorch'], 'cpu').folder}/bin/python" in trial.trouble
    assert "\n" not in trial.trouble
