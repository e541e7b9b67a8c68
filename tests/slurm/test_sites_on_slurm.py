"""What sites ask of reports on Slurm: many runs in one job, hooks, local disks, preemption."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.helpers.small_benchmark import Benchmark
from tests.slurm.cluster import wait_for
from tests.slurm.slurm_benchmark import SUITE, SlurmBenchmark

TABLES = "results/summary.csv"
REPORT = (TABLES, "--configfile", "reports/dlperf.yaml", "site.yaml")


@pytest.fixture
def benchmark(benchmark, begun) -> SlurmBenchmark:
    benchmark.take_over(begun)
    return benchmark


def of_node(benchmark: SlurmBenchmark, **cluster: object) -> dict:
    return {"nodes": 4, "devices_per_node": benchmark.cluster.gpus, **cluster}


def submit(benchmark: SlurmBenchmark, nodes: int, *options: str, then: str = "") -> tuple[int, str]:
    """Make the report within one job; returns the exit status and what the job printed."""
    call = shlex.join([sys.executable, "-m", "snakemake", *REPORT])
    (benchmark.folder / "job.sh").write_text(f"#!/bin/bash\n{call}{then}\n")
    asked = [f"--nodes={nodes}", "--exclusive", "--output=job.out", *options, "job.sh"]
    answer = benchmark.call("sbatch", *asked)
    said = benchmark.folder / "job.out"
    return answer.returncode, said.read_text() if said.exists() else ""


def test_all_runs_train_in_one_job_and_the_next_job_goes_on(benchmark):
    benchmark.configure(topologies=["1n1g", "2n2g"], repeats=1)
    status, said = submit(benchmark, 1, "--wait")
    assert status == 1, said
    assert " has 1 node: runs on 2n2g need a larger one" in said
    first = benchmark.record("1n1g")
    assert not (benchmark.run_folder("2n2g") / "run.json").exists()
    status, said = submit(benchmark, 3, "--wait")
    assert status == 0, said
    assert list(benchmark.cells()["status"]) == ["ok", "ok"]
    assert benchmark.record("1n1g") == first
    second = benchmark.record("2n2g")
    assert len(second["nodes"]) == 2
    assert second["nodes"][0] == second["host"]["hostname"]
    assert int(second["slurm_job"]) == int(first["slurm_job"]) + 1
    assert benchmark.planned(TABLES) == {}  # as jobs of their own, the runs would be the same


@pytest.mark.weekly
def test_a_call_on_the_login_node_is_told_where_runs_of_a_job_start(benchmark):
    benchmark.configure(topologies=["1n1g"], repeats=1)
    call = [sys.executable, "-m", "snakemake", *REPORT]
    answer = benchmark.call("salloc", "--nodes=1", *call)
    assert answer.returncode == 1
    assert "called on no node of a job; allowed: on node" in answer.stdout
    assert "--profile slurm, a call within a Slurm job, or" in benchmark.call(*call).stdout


@pytest.mark.weekly
def test_a_call_that_is_killed_in_a_job_leaves_no_run_in_it(benchmark):
    benchmark.configure(
        suites=[SUITE | {"shape": {"milliseconds": 4000}}], topologies=["1n1g"], repeats=1
    )
    submit(benchmark, 1, then="; sleep 300")
    benchmark.wait_for_log("1n1g", r"(started) on")
    (caller,) = (
        process
        for process in psutil.process_iter(["cwd", "cmdline"])
        if process.info["cwd"] == str(benchmark.folder)
        and process.info["cmdline"][1:3] == ["-m", "snakemake"]
    )
    caller.send_signal(signal.SIGKILL)
    benchmark.wait_until_nobody_trains()


def test_lines_before_a_launcher_and_a_copy_of_the_data_are_of_the_run(benchmark):
    before = ["export SHOWN='its $HOME'", 'echo "before: $SHOWN on $SLURMD_NODENAME"']
    benchmark.configure(
        suites=[SUITE | {"input": "records"}],
        topologies=["2n1g"],
        repeats=1,
        cluster=of_node(benchmark, before=before, stage="/run/scratch", gres="gpu"),
    )
    said = benchmark.made(TABLES)
    record = benchmark.record("2n1g")
    assert record["cluster"]["before"] == before
    log = (benchmark.run_folder("2n1g") / "train.log").read_text()
    for node in record["nodes"]:
        assert f"before: its $HOME on {node}" in log
    assert '"data": "/run/scratch/reperf-' in log
    assert list(benchmark.cells()["status"]) == ["ok"]
    assert "No job memory information" not in said

    failing = of_node(benchmark, before=["module load nccl"])
    benchmark.configure(topologies=["1n1g"], repeats=1, cluster=failing)
    benchmark.snakemake("--retries", "0", TABLES)
    failed = benchmark.record("1n1g")
    assert failed["status"] == "failed"
    assert failed["reason"].startswith("BeforeError: module load nccl ended with status 127")


@contextmanager
def partition(benchmark: SlurmBenchmark, name: str, *settings: str) -> Iterator[None]:
    """A partition of all nodes that exists for a while."""
    nodes = f"Nodes={','.join(benchmark.cluster.nodes)}"
    benchmark.cluster.run(["scontrol", "create", f"PartitionName={name}", nodes, *settings])
    try:
        yield
    finally:
        benchmark.cluster.run(["scancel", "--user=root"], check=False)
        wait_for(lambda: not benchmark.cluster.ask("squeue", "--noheader"), "all jobs to end")
        benchmark.cluster.run(["scontrol", "delete", f"PartitionName={name}"])


@pytest.mark.weekly
def test_a_preempted_run_is_tried_again_and_its_record_says_so(benchmark):
    low = of_node(benchmark, partition="low")
    benchmark.configure(
        suites=[SUITE | {"shape": {"milliseconds": 1000}}],
        topologies=["1n1g"],
        repeats=1,
        cluster=low,
    )
    with (
        partition(benchmark, "low", "PriorityTier=0", "PreemptMode=REQUEUE", "State=UP"),
        benchmark.started(*benchmark.command()) as snakemake,
    ):
        benchmark.wait_for_log("1n1g", r"(started) on")
        other = ["--partition=gpu", "--nodes=4", "--exclusive", "--wrap=sleep 3"]
        benchmark.cluster.run(["sbatch", "--output=/dev/null", *other])
        said, _ = snakemake.communicate(timeout=300)
    assert snakemake.returncode == 0, said
    lost = json.loads((benchmark.run_folder("1n1g") / "tries/1/run.json").read_text())
    assert "PREEMPTED" in lost["reason"]
    assert benchmark.record("1n1g")["status"] == "ok"
    assert "Leave Snakemake running" not in said


def test_a_call_that_trains_nothing_needs_no_slurm(benchmark, monkeypatch):
    monkeypatch.setenv("PATH", os.pathsep.join(("/usr/local/bin", "/bin")))
    here = Benchmark(benchmark.folder)
    target = ".snakemake/reperf"
    here.said(*benchmark.command(), target)
    assert Path(benchmark.folder, target).exists()
    environments = benchmark.planned("environments")
    assert "train" not in environments
