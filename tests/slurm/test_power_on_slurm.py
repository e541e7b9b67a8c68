"""The power of a run's GPUs on all of its nodes. NVML's answers are the test's own."""

import json
import sys
from pathlib import Path

import pytest

from tests.helpers.small_benchmark import SMALL

SUITE = SMALL["suites"][0] | {"input": "synthetic"}

# Each GPU of node 3 takes 3 W.
NVML = """
import socket, time
class NVMLError(Exception): pass
class Memory: total = 1 << 30
class Rates: gpu = 50
nvmlInit = nvmlShutdown = lambda: None
nvmlDeviceGetCount = lambda: 8
nvmlDeviceGetHandleByIndex = int
nvmlDeviceGetName = nvmlDeviceGetUUID = str
nvmlDeviceGetMigMode = lambda handle: [0, 0]
nvmlDeviceGetMemoryInfo = lambda handle: Memory
nvmlDeviceGetCudaComputeCapability = lambda handle: (9, 0)
nvmlDeviceGetUtilizationRates = lambda handle: Rates
NVML_CLOCK_SM = 1
nvmlDeviceGetClockInfo = lambda handle, clock: 1410
nvmlClocksThrottleReasonSwPowerCap, nvmlClocksThrottleReasonHwSlowdown = 4, 8
nvmlClocksThrottleReasonSwThermalSlowdown, nvmlClocksThrottleReasonHwThermalSlowdown = 32, 64
nvmlClocksThrottleReasonHwPowerBrakeSlowdown = 128
nvmlDeviceGetCurrentClocksThrottleReasons = lambda handle: 4
def nvmlDeviceGetTotalEnergyConsumption(handle):
    return 1000 * time.time() * int(socket.gethostname()[len("node"):])
"""
# As a run is started, which takes all of the job's GPUs.
PROGRAM = """
import json, os, subprocess, sys, time
from reperf.config import load_report
from reperf.training.places import SlurmJob
from reperf.training.telemetry import gpu_meters, power_of_window, used_gpus

run = load_report(json.load(open("report.json"))).run("small", "pytorch", "4n8g", 1)
run = run.model_copy(update={"device": "cuda"})
place = SlurmJob(run, {})
with gpu_meters(place.nodes, used_gpus(os.environ, 8), place.meters, place.environment) as meters:
    limit = time.monotonic() + 60
    while len(meters) < 4 and time.monotonic() < limit:
        time.sleep(0.1)
    begin = time.perf_counter()
    subprocess.run(place.start(["sleep", "4"]), check=True, env=place.environment)
    end = time.perf_counter()
    time.sleep(1)
power = power_of_window(meters, (1, 2), {1: begin, 2: end})
print(power.model_dump_json())
"""


def test_all_nodes_of_a_run_are_metered_while_its_step_has_all_gpus(cluster, tmp_path: Path):
    (tmp_path / "pynvml.py").write_text(NVML)
    (tmp_path / "program.py").write_text(PROGRAM)
    there = {"nodes": 4, "devices_per_node": 8}
    report = SMALL | {"suites": [SUITE], "topologies": ["4n8g"], "cluster": there}
    (tmp_path / "report.json").write_text(json.dumps(report))
    cluster.run(
        [
            *("sbatch", "--wait", "--output=said", "--nodes=4", "--ntasks-per-node=1", "--mem=0"),
            *("--exclusive", "--gpus-per-node=8", f"--export=ALL,PYTHONPATH={tmp_path}"),
            f"--wrap={sys.executable} program.py",
        ],
        cwd=tmp_path,
        check=False,
    )
    said = (tmp_path / "said").read_text()
    power = json.loads(said.splitlines()[-1])
    assert sorted(power["nodes"]) == cluster.nodes, said
    assert power["mean_watts"] == pytest.approx(8 * (1 + 2 + 3 + 4), rel=0.1)
    assert power["mean_utilisation_percent"] == 50
    assert (power["mean_mhz"], power["throttled"], power["capped"]) == (1410, 0, 1)
    assert cluster.ask("squeue", "--steps", "--noheader") == []
