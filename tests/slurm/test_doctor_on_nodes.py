"""The doctor on four real nodes: well, and each ill in a way of its own."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from reperf.builds import LockBuild
from reperf.systems import load_systems

from tests.helpers.small_benchmark import SMALL
from tests.slurm.slurm_benchmark import SlurmBenchmark


@pytest.fixture
def benchmark(benchmark) -> SlurmBenchmark:
    benchmark.configure(topologies=["1n1g", "4n1g"])
    return benchmark


def doctor(benchmark: SlurmBenchmark) -> tuple[int, str, dict]:
    """The exit status, what is printed, and what is kept."""
    answer = benchmark.call("reperf", "doctor", "--profile", "slurm", timeout=300)
    assert "all of it is in results/doctor.json" in answer.stdout, answer.stdout
    kept = json.loads((benchmark.folder / "results/doctor.json").read_text())
    return answer.returncode, answer.stdout, kept


def of_check(kept: dict, check: str) -> list[tuple[str, list[str]]]:
    """What a check found: level and nodes."""
    return [
        (found["level"], found["nodes"]) for found in kept["findings"] if found["check"] == check
    ]


@contextmanager
def hidden(benchmark: SlurmBenchmark, node: str, folder: Path) -> Iterator[None]:
    """Let an empty folder lie over a folder on one node."""
    on_node = ["srun", f"--nodelist={node}", "--chdir=/"]
    benchmark.cluster.run([*on_node, "mount", "-t", "tmpfs", "reperf", str(folder)])
    try:
        yield
    finally:
        benchmark.cluster.run([*on_node, "umount", str(folder)])


def test_nodes_that_are_well_are_all_named_and_reach_each_other(benchmark):
    status, printed, kept = doctor(benchmark)
    assert status == 0, printed
    nodes = benchmark.cluster.nodes
    for check in ("answer", "work folder", "clock", "build stand-in"):
        assert of_check(kept, check) == [("ok", nodes)]
    assert of_check(kept, "all else") == [("not there", nodes)]
    assert [one["probe"]["host"]["hostname"] for one in kept["node_reports"]] == nodes
    *alone, talked = kept["trials"]
    assert [(one["nodes"], one["trouble"]) for one in alone] == [([node], "") for node in nodes]
    assert (talked["nodes"], talked["world_size"], talked["library"]) == (nodes, 4, "sockets")
    assert [transfer["bytes"] for transfer in talked["transfers"]] == [
        10**6,
        16 * 10**6,
        64 * 10**6,
    ]
    assert "ok\tanswer\tall 4 nodes\tanswered" in printed
    assert not list(benchmark.folder.glob(".reperf-doctor-*"))


@pytest.mark.weekly
def test_ill_nodes_are_named_and_the_others_still_looked_at(benchmark, built_environments):
    """One node lacks the environments, one the work folder, one Slurm gives no jobs.

    Without the work folder a node knows the installed library alone, and so no stand-in.
    """
    suite = SMALL["suites"][0] | {"input": "synthetic"}
    benchmark.configure(suites=[suite], topologies=["1n1g", "2n1g"])
    drain = ["scontrol", "update", "nodename=node4", "reason=test"]
    environments = built_environments("pytorch")
    with hidden(benchmark, "node2", environments), hidden(benchmark, "node3", benchmark.folder):
        benchmark.cluster.run([*drain, "state=drain"])
        try:
            status, printed, kept = doctor(benchmark)
        finally:
            benchmark.cluster.run([*drain, "state=resume"])
    assert status == 1, printed
    assert of_check(kept, "answer") == [("warning", ["node4"]), ("ok", ["node1", "node2", "node3"])]
    assert of_check(kept, "work folder") == [("ok", ["node1", "node2"]), ("error", ["node3"])]
    assert of_check(kept, "build pytorch") == [("ok", ["node1"]), ("error", ["node2", "node3"])]
    missing = benchmark.folder / LockBuild(load_systems()["pytorch"], "cpu").folder
    assert f"error\tbuild pytorch\tnode2, node3\t{missing}: not there\t" in printed
    assert "node4\tSlurm says that it is drained: test" in printed
