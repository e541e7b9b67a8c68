"""What other tools and the folder's own runs say of nodes is read and shown."""

import json
from pathlib import Path

import numpy as np
import pytest
from reperf.doctor.health import findings_of_others, findings_of_runs

from tests.helpers.run_records import record_of, small_run

NODES = ("node1", "node2")
PASS = {"status": "Pass"}
FAIL = {"gpu_ids": "3", "status": "Fail", "warnings": ["Pending page retirement"]}
FAIL_4 = {"entity_id": 3, "status": "fail", "warnings": [{"warning": "Pending page retirement"}]}


def dcgmi(result: dict, top: str = "DCGM GPU Diagnostic") -> str:
    """As DCGM 3 and 4 write it; nulls stand between tests, and a line may come first."""
    tests = [{"name": "NVML Library", "results": [{"gpu_ids": "0,1", "status": "PASS"}]}, None]
    tests.append({"name": "Memory", "results": [result]})
    document = {top: {"test_categories": [{"category": "Deployment", "tests": tests}]}}
    return f"Successfully ran diagnostic for group.\n{json.dumps(document)}"


NCCL = """\
# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20
#  Rank  0 Group  0 Pid   6899 on node1 device  0 [0000:04:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   6733 on node2 device  0 [0000:04:00] NVIDIA H100 80GB HBM3
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)
           8             2     float     sum      -1    135.8    0.00    0.00      0    123.5
    67108864      16777216     float     sum      -1   1261.6   53.20   99.74      0   1270.2
  8589934592    2147483648     float     sum      -1    47535  180.71  338.82      0    47743
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 70.742
"""
ONLINE = "20230502 14:45:27 [slurm] /usr/libexec/nhc/node-mark-online node1\n"
FAILED = "ERROR:  nhc:  Health check failed:  check_fs_mount:  /scratch not mounted\n"


@pytest.mark.parametrize(
    ("name", "text", "check", "level", "what"),
    [
        ("node1.json", dcgmi(FAIL), "dcgmi diag", "error", "Memory of GPU 3: Pending"),
        ("node1.json", dcgmi(FAIL_4), "dcgmi diag", "error", "Memory of GPU 3: Pending"),
        ("node2.json", dcgmi(PASS, "DCGM Diagnostic"), "dcgmi diag", "ok", "2 of 2 results passed"),
        ("node2.json", dcgmi({"status": "Warn"}), "dcgmi diag", "warning", "no reason"),
        ("node2.json", dcgmi(FAIL)[:-9], "dcgmi diag", "warning", "cut off"),
        ("node1.log", ONLINE + FAILED, "NHC", "error", "check_fs_mount:  /scratch"),
        ("node1.log", f"{FAILED}exit 1\n", "NHC", "error", "/scratch not mounted"),
        ("node1.log", FAILED + ONLINE, "NHC", "ok", "all checks passed"),
        ("node1.log", "exit 0\n", "NHC", "ok", "all checks passed"),
        ("node1.log", "exit 3\n", "NHC", "error", "exit status 3"),
        ("all.log", NCCL, "nccl-tests", "ok", "2 ranks: 67.11 MB at 99.7 GB/s, 8,590 MB at 339 GB"),
        ("all.log", NCCL.replace("82      0", "82      7"), "nccl-tests", "error", "some sums are"),
        ("x.log", "hello\n", "health", "warning", "x.log: not the output of dcgmi diag -j"),
    ],
)
def test_a_result_is_shown_on_its_node(tmp_path, name, text, check, level, what):  # noqa: PLR0917
    (tmp_path / name).write_text(text)
    (found,) = findings_of_others(NODES, tmp_path)
    assert (found.check, found.level) == (check, level)
    assert found.nodes == (NODES if check == "nccl-tests" else (name.partition(".")[0],))
    assert what in found.what


def test_without_the_folder_nothing_is_said(tmp_path):
    assert not list(findings_of_others(NODES, tmp_path / "nowhere"))


def write(folder: Path, repeat: int, times: list[float | None]) -> None:
    """A run on two nodes of two devices."""
    run = small_run("2n2g", repeat=repeat)
    record = record_of(run, nodes=("node1", "node2"), rank_seconds_alone=times)
    path = folder / run.record
    path.parent.mkdir(parents=True, exist_ok=True)
    record.write(path)


def test_the_slow_device_is_named_and_nodes_whose_devices_are_alike_are_well(tmp_path):
    random = np.random.default_rng(1)
    for repeat in range(1, 8):
        usual = repeat * (1 + 0.002 * random.normal(0, 1, 4))
        write(tmp_path, repeat, [*usual[:3], 1.03 * usual[3]])
    (tmp_path / "results/runs/small/pytorch/2n2g/2/run.json").write_text("{")
    first, second = findings_of_runs(tmp_path)
    assert (first.level, first.nodes) == ("ok", ("node1",))
    assert first.what == "none of 2 slower than the others in 6 runs of this folder"
    assert (second.level, second.nodes) == ("warning", ("node2",))
    assert second.what.startswith("rank 1 takes 3.")


@pytest.mark.parametrize("times", [[], [None] * 4, [1.0, 2.0, 1.0, 1.0]])
def test_runs_that_time_nothing_and_one_run_alone_say_nothing(tmp_path, times):
    write(tmp_path, 1, times)
    assert not list(findings_of_runs(tmp_path))
