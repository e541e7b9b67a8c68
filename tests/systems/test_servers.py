"""Parameter servers beside trainers: what dies or hangs is named, and nothing outlives a run."""

import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from servers import SHAPE, SYSTEM, follow_pages
from small_benchmark import SMALL, Benchmark, new_benchmark
from trainer import MARK, TRAIN_ONCE, small, step_log

HERE = socket.gethostname()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, environments) -> Path:
    """A benchmark with a system that has servers, in PyTorch's environment."""
    benchmark = new_benchmark(tmp_path_factory.mktemp("servers") / "benchmark", environments)
    follow_pages(benchmark.folder, shares="pytorch")
    return benchmark.folder


def train(folder: Path, time_limit: int = 240, **changes: object) -> subprocess.Popen:
    """Train as the workflow does, in a process of its own."""
    run = small(SYSTEM, workload="softmax", shape=SHAPE, servers={"per_node": 1}, **changes)
    return subprocess.Popen(
        [sys.executable, str(TRAIN_ONCE), json.dumps(run), str(time_limit)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "workflow"), MARK: str(folder)},
    )


def hit(folder: Path, process: subprocess.Popen, what: signal.Signals, who: str) -> float:
    """Send a signal to a rank or server after its tenth iteration.

    Returns:
        How many seconds of the run's limit had passed; infinity: the run was over.
    """
    begun, log, victim = time.monotonic(), "", None
    far = rf'^{who}: iteration \d{{2}}|"iteration": \d{{2}}, .*"rank": {who[-1]},'
    while not victim and process.poll() is None:
        time.sleep(0.1)
        begun = begun if log else time.monotonic()
        log = "".join(one.read_text() for one in folder.rglob("results/**/tries/1/train.log"))
        if re.search(far, log, re.MULTILINE):
            victim = re.search(rf"{who}: started on \S+ process (\d+)", log)
    with suppress(ProcessLookupError):
        if victim:
            os.kill(int(victim[1]), what)
            return time.monotonic() - begun
    return math.inf


def ended(folder: Path, process: subprocess.Popen) -> tuple[dict, str]:
    """The record and the log of a run, when it has ended; no process may outlive it."""
    assert process.wait(900) == 0
    marked = psutil.process_iter(["environ"])
    assert not [p for p in marked if (p.info["environ"] or {}).get(MARK) == str(folder)]
    (record,) = folder.glob("results/runs/small/*/*/1/run.json")
    said = json.loads(record.read_text()), record.with_name("train.log").read_text()
    shutil.rmtree(folder / "results")
    return said


def test_trainers_in_step_end_with_equal_weights_and_those_in_their_own_time_log_each(folder):
    together, log = ended(folder, train(folder))
    assert (together["status"], together["reason"]) == ("ok", "")
    assert [one["rank"] for one in together["servers_heard"]] == [0]
    assert "--role=server" in together["servers_command"]
    facts, steps = step_log(log)
    assert len(set(facts["weight_digests"])) == 1
    assert [one["samples"] for one in steps] == [16 * count for count in range(1, 7)]

    apart, log = ended(folder, train(folder, variant="async", together=True))
    assert (apart["status"], apart["reason"]) == ("ok", "")
    lines = [line for line in log.splitlines() if "tracked_stats" in line]
    events = [json.loads(line.partition(" ")[2]) for line in lines]
    for rank in (0, 1):
        own = [one["value"] for one in events if one["metadata"]["rank"] == rank]
        assert [one["samples"] for one in own] == [8 * count for count in range(1, 7)]
    assert log.count('"key": "run_stop"') == 2


def test_more_servers_than_cores_are_refused_in_one_line(folder):
    benchmark = Benchmark(folder)
    many = {"system": SYSTEM, "servers": {"threads": 1024}}
    suite = SMALL["suites"][0] | {"workload": "softmax", "shape": SHAPE, "input": "synthetic"}
    benchmark.configure(suites=[suite | {"systems": [many]}])
    said = benchmark.snakemake("--configfile", "local/report.yaml", "--dry-run").stdout
    (line,) = [line for line in said.splitlines() if "reperf: " in line]
    assert "suite small: numpy-servers+servers-1x1024: 1 server a node, 1024 threads each" in line
    assert "need 1024 CPUs; allowed: up to " in line


@pytest.mark.parametrize(
    ("what", "who", "changes", "reason"),
    [
        (
            signal.SIGKILL,
            "server 0",
            {},
            f"failed: server 0 on {HERE} ended with SIGKILL, before the trainers",
        ),
        # The other rank may have printed once more.
        (signal.SIGKILL, "rank 1", {}, f"failed: rank 1 on {HERE} was ended by SIGKILL; "),
        (signal.SIGSTOP, "server 0", {}, "; server 0 of 1 was last heard of at iteration"),
        (
            signal.SIGSTOP,
            "rank 1",
            {"variant": "async", "together": True},
            "timeout: no end after {limit} s; rank 1 of 2 was last heard of at iteration",
        ),
    ],
)
def test_what_dies_or_hangs_is_named(folder, what, who, changes, reason):
    # What hangs lets a run last to its limit: a short one, unless a busy machine needs half of it.
    limit = 12 if what == signal.SIGSTOP else 240
    process = train(folder, limit, iterations=100_000, **changes)
    while hit(folder, process, what, who) > limit / 2:
        ended(folder, process)
        limit *= 2
        process = train(folder, limit, iterations=100_000, **changes)
    record, _ = ended(folder, process)
    assert reason.format(limit=limit) in ": ".join((record["status"], record["reason"]))
