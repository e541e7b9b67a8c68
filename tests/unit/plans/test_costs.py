"""`reperf estimate`: what a report asks for, before anything starts."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from reperf.cli import main
from reperf.config import load_report
from reperf.config.run import estimated_memory
from reperf.plans.costs import Cost, describe_costs, sizes_of, table_of_costs

from tests.helpers.run_records import record_of
from tests.helpers.small_benchmark import ROOT

GPUS_ONLY = {"system": "ngc-tensorflow1", "variants": "xla"}
SUITE = {"workload": "resnet50", "batch_size": 8, "systems": ["pytorch", "mxnet"]}
CONFIG = {
    "title": "A report",
    "device": "cpu",
    "topologies": ["1n1g"],
    "repeats": 3,
    "time_limit": 1200,
    "memory_limit": 2**32,
    "suites": [
        SUITE | {"name": "one", "precision": "fp32"},
        SUITE | {"name": "two", "precision": "fp32", "systems": [GPUS_ONLY]},
        SUITE | {"name": "three", "precision": "fp32", "systems": ["pytorch"], "time_limit": 36000},
    ],
}


@pytest.fixture
def told(tmp_path, capsys, monkeypatch) -> Callable[..., list[str]]:
    """What the command says of a report."""
    monkeypatch.chdir(tmp_path)

    def estimate(*options: str, status: int = 0, **changes: object) -> list[str]:
        Path("mine.yaml").write_text(yaml.safe_dump(CONFIG | changes))
        before = sorted(Path().rglob("*"))
        assert main(["estimate", "--configfile", "mine.yaml", *options]) == status
        assert sorted(Path().rglob("*")) == before
        said = capsys.readouterr()
        return [*said.out.splitlines(), *said.err.splitlines()]

    return estimate


def test_the_table_has_a_line_a_suite_in_the_reports_order():
    costs = [Cost("three", "pytorch", "1n1g", 0.25, 10, "")] * 2
    costs += [
        Cost("one", entry, "2n8g", 0.0483, 1, "")
        for entry in ("pytorch", "mxnet")
        for _ in "x" * 150
    ]
    for on_nodes, heading, time in (
        (True, "node-hours", "15 (320)"),
        (False, "time", "15 h (13 days)"),
    ):
        rows = list(table_of_costs(costs, on_nodes=on_nodes))
        head, *lines = (row.split() for row in rows)
        assert head == f"suite systems 1n1g 2n8g runs {heading} (at most)".split()
        told = [" ".join(line[:5]) for line in lines]
        assert told == ["three 1 2 - 2", "one 2 - 300 300", "all 2 2 300 302"]
        assert rows[-1].endswith(f" {time}")
        assert len({len(row) for row in rows}) == 1


def test_the_table_of_sizes_has_every_lock_as_it_is():
    """After a lock has changed: python envs/find_sizes.py."""
    locks = sorted(ROOT.glob("envs/*.txt"))
    lacks = [lock.name for lock in locks if not sizes_of(lock)]
    assert lacks == ["paddlepaddle.overlay.txt", "pytorch.overlay.txt"]


def test_runs_that_ended_here_tell_how_long_those_to_come_take(told):
    report = load_report(CONFIG)
    every = [run for suite in report.suites for run in report.runs(suite)]
    for run, seconds in zip((run for run in every if run.suite == "one"), (100, 140), strict=False):
        run.folder.mkdir(parents=True)
        record_of(run, seconds=seconds).write(run.record)
    lines = told()
    by = "time of 3 runs: median of ended runs of the same"
    assert {f"{by} entry and topology", f"{by} suite"} < set(lines)
    # 6 x 120 s: mxnet has no record, so its suite's count.
    assert lines[3].endswith(" 12 min (2 h)")


DOWNLOAD = r"to download: \d+ packages of {0}\.txt for {0}: {1} GiB, {2} GiB once unpacked"
FOUR = {"name": "four", "workload": "resnet50", "precision": "amp", "batch_size": 250}
FOUR |= {"input": "synthetic", "systems": ["pytorch", "ngc-pytorch", "oneflow"]}
ON_GPUS = {"device": "cuda", "memory_limit": None}
OF_GPUS = ON_GPUS | {"suites": [FOUR], "topologies": ["1n4g"]}
CLUSTER = {"nodes": 2, "devices_per_node": 8}
ONE = FOUR | {"name": "one", "systems": ["pytorch"], "topologies": ["2n2g"], "repeats": 4}
ON_NODES = ON_GPUS | {"suites": [ONE], "cluster": CLUSTER}
SHARED = ON_NODES | {"cluster": CLUSTER | {"exclusive": False}}
LARGEST = CONFIG["suites"][2] | {"batch_size": "largest"}


@pytest.mark.parametrize(
    ("options", "changes", "said"),
    [
        # 120 iterations of 8 images of 24.3 GFLOP at 30 GFLOP/s: 778 s, and 8 to start
        ("", {}, ["A report: 9 runs on cpu", r"one +2 +6 +6 +1\.3 h \(2 h\)"]),
        ("", {}, [DOWNLOAD.format(*of) for of in (("mxnet", 0.3, 0.9), ("pytorch", 2.6, 4.6))]),
        ("", {}, [r"disk: up to \d\.\d GiB more; \S+ GiB are free here"]),
        ("", {}, [r"memory: up to 4\.0 GiB of a node, 4\.0 GiB a process"]),
        ("", {}, ["unsupported: 1 cell of ngc-tensorflow1: .*"]),
        ("", {}, ["3 repeats cannot rank 2 systems; 4 can: one"]),
        ("", {"repeats": 4}, ["4 repeats can rank 2 systems: one"]),
        # A search may take four time limits.
        ("", {"suites": [LARGEST]}, [r"1 search .*: \S+ h \(40 h\)"]),
        # 120 iterations of 250 images of 24.3 GFLOP at 148 TFLOP/s: 4.9 s, and 40 to start
        ("--devices 4", OF_GPUS, ["A report: 9 runs on cuda", r"four .* 6\.7 min \(3 h\)"]),
        ("--devices 4", OF_GPUS, ["3 repeats cannot rank 3 systems; 5 can: four"]),
        (
            "--devices 2",
            OF_GPUS,
            ["reperf: .*: topology 1n4g is too large: cluster has 1 nodes .*"],
        ),
        (
            "--devices 8",
            ON_NODES,
            ["reperf: mine.yaml: cluster: says how many GPUs a node has; .*"],
        ),
        # Exclusive nodes count whole.
        (
            "--profile mine",
            ON_NODES,
            [r"suite .* node-hours \(at most\)", r"one .* 4 +0\.1 \(.*\)"],
        ),
        ("--profile mine", ON_NODES, ["in all .* on 2 nodes if none.*"]),
        ("--profile mine", SHARED, [r"one .* 4 +0\.025 \(.*\)"]),
        ("", ON_NODES, ["reperf: mine.yaml: cluster: the report needs it; allowed: --profile .*"]),
        ("--profile mine", {}, ["reperf: mine.yaml: cluster: missing; --profile slurm and .*"]),
        # What the call would refuse.
        ("", {"data": {"images": "nowhere"}}, ["reperf: refused as it is: .*nowhere.*"]),
    ],
)
def test_it_tells(told, options, changes, said):
    Path("mine").mkdir()
    Path("mine/config.yaml").write_text("jobs: 9")
    lines = told(*options.split(), status=int(said[0].startswith("reperf: ")), **changes)
    for pattern in said:
        assert any(re.fullmatch(pattern, line) for line in lines), (pattern, lines)


@pytest.mark.parametrize(
    "path", [ROOT / "config.yaml", *sorted(ROOT.glob("reports/*.yaml"))], ids=lambda path: path.name
)
def test_the_repeats_of_reports_that_ship_can_rank_their_systems(path):
    report = load_report(yaml.safe_load(path.read_text()))
    if report.device == "auto":
        report = report.model_copy(update={"device": "cpu"})
    ranked = [line for line in describe_costs(report) if " rank " in line]
    assert ranked
    assert not [line for line in ranked if "cannot" in line]


@pytest.mark.parametrize(
    ("entry", "precision", "expected"),
    [
        ({"parallel": {"shard": 8}}, "bf16", 70.6e9),
        ({"parallel": {"shard": 8}, "variants": "recompute"}, "bf16", 30.1e9),
        ({"parallel": {"shard": 4, "tensor": 2}}, "bf16", 43.3e9),
        ({"parallel": {"shard": 8}, "variants": "recompute"}, "fp32", 35.7e9),
    ],
)
def test_it_estimates_the_memory_of_what_devices_share(entry, precision, expected):
    """16 bytes a parameter over all devices; features over those that share layers."""
    suite = {"name": "llama", "workload": "llama3-8b", "precision": precision, "batch_size": 1}
    suite |= {"topologies": ["1n8g"], "input": "synthetic", "systems": [{"system": "fsdp"} | entry]}
    report = load_report({"device": "cpu", "suites": [suite]})
    run = report.runs(report.suites[0])[0]
    assert estimated_memory(run) == pytest.approx(expected, rel=0.02)
    assert any(line.startswith("memory of a device in llama") for line in describe_costs(report))
    assert estimated_memory(run.model_copy(update={"workload": "resnet50", "shape": {}})) is None
    # As records of others may be.
    for unknown in ({"system": "theirs"}, {"variant": "compile+theirs"}, {"shape": {"layers": 1}}):
        assert estimated_memory(run.model_copy(update=unknown)) is None
