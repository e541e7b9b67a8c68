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


@pytest.mark.parametrize(
    ("on_nodes", "heading", "all_of_it"),
    [(True, "node-hours (at most)", "15 (320)"), (False, "time (at most)", "15 h (13 days)")],
)
def test_the_table_has_a_line_a_suite_in_the_reports_order(on_nodes, heading, all_of_it):
    costs = [Cost("three", "pytorch", "1n1g", 0.25, 10, "")] * 2
    costs += [
        Cost("one", entry, "2n8g", 0.0483, 1, "")
        for entry in ("pytorch", "mxnet")
        for _ in "x" * 150
    ]
    head, first, second, last = table_of_costs(costs, on_nodes=on_nodes)
    assert head.split() == ["suite", "systems", "1n1g", "2n8g", "runs", *heading.split()]
    assert first.split()[:5] == ["three", "1", "2", "-", "2"]
    assert second.split()[:5] == ["one", "2", "-", "300", "300"]
    assert last.split()[:5] == ["all", "2", "2", "300", "302"]
    assert last.endswith(f" {all_of_it}")
    assert len({len(line) for line in (head, first, second, last)}) == 1


def test_it_tells_runs_hours_downloads_room_and_what_cannot_run(told):
    lines = told()
    assert lines[0] == "A report: 9 runs on cpu"
    assert lines[3].split()[3:] == ["6", "1.3", "h", "(2", "h)"]
    # 120 iterations of 8 images of 24.3 GFLOP at 30 GFLOP/s: 778 s, and 8 to start
    rest = "\n".join(lines)
    for system, size in (("mxnet", "0.3 GiB, 0.9"), ("pytorch", "2.6 GiB, 4.6")):
        packages = rf"\d+ packages of {system}\.txt"
        pattern = rf"^to download: {packages} for {system}: {size} GiB once unpacked$"
        assert re.search(pattern, rest, re.MULTILINE), rest
    assert re.search(r"^disk: up to \d\.\d GiB more; \S+ GiB are free here$", rest, re.MULTILINE)
    assert "memory: up to 4.0 GiB of a node, 4.0 GiB a process" in lines
    assert [line for line in lines if line.startswith("unsupported: 1 cell of ngc-tensorflow1: ")]


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


def test_it_tells_the_hours_of_a_search_which_may_take_four_time_limits(told):
    suite = CONFIG["suites"][2] | {"batch_size": "largest"}
    lines = told(suites=[suite])
    assert [line for line in lines if re.fullmatch(r"1 search .*: \S+ h \(40 h\)", line)]


def test_another_node_is_assumed_to_have_so_many_gpus(told):
    suite = {"name": "four", "workload": "resnet50", "precision": "amp", "batch_size": 250}
    suite |= {"input": "synthetic", "systems": ["pytorch", "ngc-pytorch", "oneflow"]}
    of_gpus = {"device": "cuda", "memory_limit": None, "suites": [suite], "topologies": ["1n4g"]}
    lines = told("--devices", "4", **of_gpus)
    assert lines[0] == "A report: 9 runs on cuda"
    # 120 iterations of 250 images of 24.3 GFLOP at 148 TFLOP/s: 4.9 s, and 40 to start
    assert lines[3].endswith(" 6.7 min (3 h)")
    assert "3 repeats cannot rank 3 systems; 5 can: four" in lines
    *_, refused = told("--devices", "2", status=1, **of_gpus)
    assert "topology 1n4g is too large: cluster has 1 nodes with 2 devices each" in refused
    cluster = {"cluster": {"nodes": 2, "devices_per_node": 8}}
    (refused,) = told("--devices", "8", status=1, **of_gpus | cluster)
    assert refused.startswith("reperf: mine.yaml: cluster: says how many GPUs a node has; allowed")


@pytest.mark.parametrize(("exclusive", "node_hours"), [(True, "0.1"), (False, "0.025")])
def test_exclusive_nodes_count_whole(told, exclusive, node_hours):
    suite = {"name": "one", "workload": "resnet50", "precision": "amp", "input": "synthetic"}
    suite |= {"batch_size": 250, "systems": ["pytorch"], "topologies": ["2n2g"], "repeats": 4}
    Path("profile").mkdir()
    Path("profile/config.yaml").write_text("jobs: 9")
    cluster = {"nodes": 2, "devices_per_node": 8, "exclusive": exclusive}
    lines = told(
        *("--profile", "profile"), suites=[suite], device="cuda", memory_limit=None, cluster=cluster
    )
    assert lines[2].endswith("node-hours (at most)")
    assert lines[3].split()[4] == node_hours
    assert any(line.startswith("in all ") and " on 2 nodes if none" in line for line in lines)


def test_a_report_for_a_cluster_needs_its_profile_and_a_profile_its_cluster(told):
    cluster = {"nodes": 2, "devices_per_node": 8}
    (refused,) = told(status=1, cluster=cluster, device="cuda", memory_limit=None)
    assert "mine.yaml: cluster: the report needs it; allowed: --profile slurm" in refused
    (refused,) = told("--profile", "slurm", status=1)
    assert "mine.yaml: cluster: missing; --profile slurm and --jobs need it" in refused


@pytest.mark.parametrize(
    ("repeats", "said"),
    [(3, "3 repeats cannot rank 2 systems; 4 can"), (4, "4 repeats can rank 2")],
)
def test_it_tells_whether_the_repeats_can_rank_the_systems(told, repeats, said):
    lines = told(repeats=repeats)
    assert [line for line in lines if line.startswith(said) and line.endswith(": one")]
    assert not [line for line in lines if "rank" in line and "three" in line]


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


def test_it_tells_what_the_call_would_refuse(told):
    *_, last = told(status=1, data={"images": "nowhere"})
    assert last.startswith("reperf: refused as it is: ")
    assert "nowhere" in last


def test_a_file_that_is_none_is_one_line(capsys):
    assert main(["estimate", "--configfile", "missing.yaml"]) == 1
    assert capsys.readouterr().err == "reperf: missing.yaml: No such file or directory\n"


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
