"""A survey of four real nodes: healthy, one throttled, one that computes otherwise, a slow link."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from xml.etree import ElementTree as ET

import psutil
import pytest
from reperf.survey.node_jobs import name_of_pair, tournament

from tests.helpers.refusal import cannot_run
from tests.slurm.slurm_benchmark import SUITE, SlurmBenchmark, new_slurm_benchmark

FREEZER = ("FROZEN", "THAWED")
FROZEN, THAWED = 0.12, 0.08
"""Seconds: a node trains at half its speed or less, which shows on a busy machine, too."""
STEADY = 20
"""Milliseconds of an iteration that sleeps most of it: a busy machine hardly disturbs it."""


@pytest.fixture
def benchmark(cluster, tmp_path, environments) -> SlurmBenchmark:
    return new_slurm_benchmark(tmp_path / "benchmark", environments, cluster)


def survey(
    benchmark: SlurmBenchmark, *options: str, topologies: tuple[str, ...] = ("1n1g",), **shape: int
) -> tuple[int, str, dict]:
    """The exit status, what is printed, and what is kept."""
    configure(benchmark, topologies, shape)
    answer = benchmark.call("reperf", "survey", "--profile", "slurm", *options, timeout=400)
    return answer.returncode, answer.stdout, kept(benchmark, answer.stdout)


def configure(
    benchmark: SlurmBenchmark, topologies: tuple[str, ...] = ("1n1g",), shape: dict | None = None
) -> None:
    benchmark.configure(
        topologies=[*topologies],
        iterations=60,
        print_every=10,
        window={"warmup": 10, "measured": 50},
        suites=[SUITE | {"shape": {"milliseconds": STEADY} | (shape or {})}],
    )


def kept(benchmark: SlurmBenchmark, printed: str) -> dict:
    file = benchmark.folder / "results/survey/survey.json"
    assert file.exists(), printed
    return json.loads(file.read_text())


def states(kept: dict) -> dict[str, str]:
    return {node: one["state"] for node, one in kept["verdicts"]["nodes"].items()}


@contextmanager
def throttled(benchmark: SlurmBenchmark, node: str) -> Iterator[None]:
    """Freeze all that runs on a node for a part of each moment, as cpulimit does with processes."""
    machine = psutil.Process(benchmark.cluster._machines[node].pid)
    with freezing() as move:
        move([process.pid for process in machine.children(recursive=True)])
        yield


@contextmanager
def throttled_rank(benchmark: SlurmBenchmark, node: str, rank: int) -> Iterator[None]:
    """Freeze every process of one rank of a node likewise, from soon after its start."""
    machine, over = psutil.Process(benchmark.cluster._machines[node].pid), Event()
    trains = ("trainers/train.py",)

    def look() -> None:
        while not over.wait(0.05):
            for process in machine.children(recursive=True):
                with suppress(psutil.Error, OSError):
                    words, place = process.cmdline(), process.environ().get("LOCAL_RANK")
                    if place == str(rank) and any(word.endswith(trains) for word in words):
                        move([process.pid])

    with freezing() as move:
        watch = Thread(target=look)
        watch.start()
        try:
            yield
        finally:
            over.set()
            watch.join()


@contextmanager
def freezing() -> Iterator[Callable[[Iterable[int]], None]]:
    """A control group that is frozen for a part of each moment; yields what moves processes in."""
    root = Path("/sys/fs/cgroup")
    first = root / "freezer" if (root / "freezer").is_dir() else root
    group = first / f"reperf-{os.getpid()}"
    file, words = ("cgroup.freeze", "10") if first == root else ("freezer.state", FREEZER)
    try:
        group.mkdir()
        (group / file).write_text(words[1])
    except OSError as error:
        cannot_run(f"a control group: {error}")

    def move(processes: Iterable[int], target: Path = group) -> None:
        for process in processes:
            (target / "cgroup.procs").write_text(str(process))

    def freeze() -> None:
        while not over.wait(THAWED):
            (group / file).write_text(words[0])
            over.wait(FROZEN)
            (group / file).write_text(words[1])

    over, throttle = Event(), Thread(target=freeze)
    throttle.start()
    try:
        yield move
    finally:
        over.set()
        throttle.join()
        move(map(int, (group / "cgroup.procs").read_text().split()), first)
        group.rmdir()


@contextmanager
def slow_link(benchmark: SlurmBenchmark, nodes: tuple[str, ...]) -> Iterator[None]:
    """Throttle what the first node sends to the second, and nothing else."""
    address = f"10.99.0.{benchmark.cluster.nodes.index(nodes[1]) + 1}/32"
    machine = benchmark.cluster._machines[nodes[0]].pid

    def tc(words: str) -> None:
        subprocess.run(
            ["nsenter", f"--target={machine}", "--net", "tc", *words.split()], check=True
        )

    tc("qdisc add dev eth0 root handle 1: htb")
    try:
        tc("class add dev eth0 parent 1: classid 1:1 htb rate 1mbit burst 2k")
        tc(f"filter add dev eth0 parent 1: protocol ip u32 match ip dst {address} flowid 1:1")
        yield
    finally:
        tc("qdisc delete dev eth0 root")


@pytest.mark.weekly
def test_of_healthy_nodes_none_is_named(benchmark):
    status, printed, found = survey(benchmark, "--margin", "20%", "--runs", "3")
    assert {*states(found).values()} <= {"ok", "unclear"}, printed
    assert status == 0, printed
    assert "all nodes' agree to the bit" in printed
    assert len(found["runs"]) == 12
    assert {one["node"] for one in found["runs"] if one["round"] == 2} == {*benchmark.cluster.nodes}
    page = (benchmark.folder / "results/survey/survey.html").read_text()
    assert page.count("<circle") == 12


@pytest.mark.weekly
def test_a_target_of_the_workflow_surveys_too(benchmark):
    """It needs no more than that the framework is there, and is not tried again."""
    configure(benchmark)
    answer = benchmark.snakemake("survey")
    found = kept(benchmark, answer.stdout)
    assert len(found["runs"]) == 20
    assert "computes otherwise" not in states(found).values(), answer.stdout
    assert answer.returncode == 0
    assert "4 nodes, 5 runs each of small stand-in 1n1g" in answer.stdout
    assert not list(benchmark.folder.glob("results/runs/**/train.log"))


def test_a_throttled_node_and_one_that_computes_otherwise_are_named(benchmark, tmp_path):
    junit = tmp_path / "junit.xml"
    options = ("--runs", "3", "--margin", "5%", "--junit", str(junit))
    with throttled(benchmark, "node3"):
        status, printed, found = survey(benchmark, *options, flips=2)
    assert status == 1
    named = states(found)
    assert (named.pop("node2"), named.pop("node3")) == ("computes otherwise", "slow"), printed
    assert set(named.values()) <= {"ok", "unclear"}, printed
    said = printed.partition("computes otherwise\tnode2\t")[2]
    assert re.match(r"its loss at iteration \d0 is \d", said), printed
    assert "--exclude=node2,node3" in printed
    cases = ET.parse(junit).iter("testcase")
    failed = [case.get("name") for case in cases if len(case.findall("failure"))]
    assert failed == ["node2", "node3"]


@pytest.mark.weekly
def test_a_throttled_link_is_named_and_neither_of_its_nodes(benchmark):
    """By htb, as many kernels lack netem. An iteration of 20 ms sends 10 kB, which takes 80 ms."""
    (slow, *_), (_, healthy) = tournament(benchmark.cluster.nodes, 2, seed=1)
    options = ("--links", "--runs", "2", "--margin", "10%")
    with slow_link(benchmark, slow):
        status, printed, found = survey(benchmark, *options, topologies=("1n1g", "2n1g"))
    links = {name: one["state"] for name, one in found["verdicts"]["links"].items()}
    assert links.pop(name_of_pair(slow)) == "slow", printed
    assert links[name_of_pair(healthy)] in ("ok", "unclear"), printed
    assert set(links.values()) <= {"ok", "unclear"}, printed
    assert set(states(found).values()) <= {"ok", "unclear"}, printed
    assert found["verdicts"]["with_slow_links"] == []
    assert status == 1
    assert "no node's links are all slow" in printed
    assert "--exclude" not in printed
    page = (benchmark.folder / "results/survey/survey.html").read_text()
    assert page.count("<circle") == 16


@pytest.mark.weekly
def test_a_rank_in_a_control_group_is_named_and_no_other(benchmark):
    with throttled_rank(benchmark, "node3", 2):
        _, printed, found = survey(benchmark, "--margin", "5%", "--runs", "3", topologies=("1n4g",))
    slow = {node: one["slow_ranks"] for node, one in found["verdicts"]["nodes"].items()}
    assert slow == {"node1": [], "node2": [], "node3": [2], "node4": []}, printed
    assert states(found)["node3"] == "slow", printed
    assert "its rank 2 takes " in printed


def test_bad_input_is_one_line(benchmark):
    for options, reason in {
        "--suite smal": "--suite smal: not in the report; allowed: small; did you mean small?",
        "--runs 1": "--runs: got 1; allowed: 2 or more",
        "--margin 0": "--margin: got '0'; allowed: a percentage above 0%",
    }.items():
        answer = benchmark.call("reperf", "survey", "--profile", "slurm", *options.split())
        assert answer.returncode != 0
        (line,) = answer.stdout.splitlines()
        assert reason in line


@pytest.mark.weekly
def test_a_node_that_gets_no_jobs_is_told_and_one_alone_is_refused(benchmark):
    drain = ["scontrol", "update", "reason=test"]
    excluded = {"nodes": 3, "devices_per_node": 8, "options": ["--exclude=node[3-4]"]}
    benchmark.configure(cluster=excluded)
    benchmark.cluster.run([*drain, "nodename=node2", "state=drain"])
    try:
        answer = benchmark.call("reperf", "survey", "--profile", "slurm")
    finally:
        benchmark.cluster.run([*drain, "nodename=node2", "state=resume"])
    there = "a survey compares nodes: the nodes that get jobs are: node1; allowed: two or more"
    assert answer.stdout.splitlines()[-1] == f"reperf: {there}"
