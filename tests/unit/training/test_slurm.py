"""What is asked of Slurm, and what is made of its answers."""

import os
import re
import subprocess
from collections.abc import Sequence
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.builds.engines import VISIBLE_GPUS, inside
from reperf.config import Report, load_report
from reperf.config.parallelism import Servers
from reperf.errors import ReperfError
from reperf.machine import resolve
from reperf.plans.planning import Plans
from reperf.training import slurm
from reperf.training.places import _on_its_node, whole_lines


def report(
    topologies: Sequence[str] = ("1n1g", "4n8g"),
    *,
    on: str = "cuda",
    threads: int = 0,
    **of: object,
) -> Report:
    """A report for a cluster: `on` the device, with `threads` that load data."""
    suite = {"name": "small", "workload": "resnet50", "precision": "fp32", "batch_size": 4}
    config = {
        "suites": [suite | {"input": "synthetic", "systems": ["pytorch"]}],
        "topologies": list(topologies),
        "time_limit": 90,
        "cluster": {"nodes": 4, "devices_per_node": 8} | of,
    }
    made = resolve(load_report(config))
    suites = tuple(one.model_copy(update={"device": on}) for one in made.suites)
    return made.model_copy(update={"suites": suites, "loader_threads": threads})


ASKED = ("cpus_per_task", "runtime", "mem_mb", "slurm_partition", "slurm_account", "sbatch_options")
SAID = {
    **{"partition": "v100", "account": "bench", "exclusive": False, "cpus_per_device": 6},
    **{"memory_mb": 64000, "spare_minutes": 10, "options": ["--qos=high", "--constraint=ib"]},
}
WHOLE = "--exclusive --mem=0"
GPUS = f"7 None None None --gpus-per-node=8 {WHOLE}"


@pytest.mark.parametrize(
    ("of", "changes", "asks"),
    [
        # A minute and a half, rounded up, and five to spare.
        ({}, {}, f"8 {GPUS}"),
        # Whatever the other suites of its report train on.
        ({}, {"device": "cpu"}, f"8 7 None None None {WHOLE}"),
        ({"cpus_per_device": 2}, {}, f"16 {GPUS}"),
        ({"cpus_per_device": 2}, {"servers": Servers(per_node=3)}, f"19 {GPUS}"),
        ({"cpus_per_device": 2, "threads": 6}, {}, f"48 {GPUS}"),
        ({"gres": "gpu:v100"}, {}, f"8 7 None None None --gres=gpu:v100:8 {WHOLE}"),
        (SAID, {}, "48 12 64000 v100 bench --gpus-per-node=8 --qos=high --constraint=ib"),
    ],
)
def test_a_run_asks_for_what_it_and_the_configuration_say(of, changes, asks):
    made = report(["4n8g"], **of)
    plan = next(iter(Plans(made).runs.values()))
    plan = plan.model_copy(update={"run": plan.run.model_copy(update=changes)})
    found = slurm.resources_of_job(made, [plan], lambda _: plan)
    nodes = "--nodes=4 --ntasks-per-node=1 "
    assert " ".join(str(found.get(key)) for key in ASKED).replace(nodes, "") == asks
    assert found.keys() <= {"tasks", *ASKED}
    here = made.model_copy(update={"cluster": None})
    assert slurm.resources_of_job(here, [plan], lambda _: plan) == {}


def test_only_what_differs_between_jobs_is_a_function_of_them():
    of = report()
    plans = {plan.run.topology: plan for plan in Plans(of).runs.values()}
    resources = slurm.resources_of_job(of, plans.values(), plans.__getitem__)
    assert resources["runtime"] == 7
    assert [resources["tasks"](topology) for topology in ("1n1g", "4n8g")] == [1, 4]


BEFORE = ["load() { export LOADED=$1; }", "load 'its own'", "[ -n x ] || echo never"]
# As engines clear all of it.
CLEARED = ["env", "--unset=CUDA_VISIBLE_DEVICES"]


@pytest.mark.parametrize(
    ("words", "before", "status", "said"),
    [
        (["printf", "[%s]", "-r={node_rank}", "my images", ""], [], 0, "[-r=3][my images][]"),
        (["sh", "-c", "echo error >&2"], [], 0, "error\n"),
        # Lines of a site come first, and must end well.
        (["printenv", "LOADED"], BEFORE, 0, "its own\n"),
        (["sh", "-c", "exit 3"], BEFORE, 3, ""),
        (
            *(["echo", "launched"], ["ls /nowhere", *BEFORE], 2),
            "BeforeError: ls /nowhere ended with status 2\n",
        ),
        # A container sees the GPUs that Slurm gives its job there.
        ([*CLEARED, *inside(["printenv", CLEARED[1][8:]], VISIBLE_GPUS)], [], 0, "2,GPU-8f2\n"),
    ],
)
def test_a_command_knows_its_node(words, before, status, said):
    given = {"PATH": os.defpath, "SLURM_NODEID": "3", "CUDA_VISIBLE_DEVICES": "2,GPU-8f2"}
    shell = _on_its_node(words, before)
    answer = subprocess.run(shell, env=given, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (status, "")
    # What failed has had its say before.
    assert (answer.stdout if status != 2 else answer.stdout.splitlines(True)[-1]) == said


def as_srun_labels(node: int, text: bytes) -> list[bytes]:
    """A line as `srun --label` passes it on: no more than 1024 bytes at once."""
    text += b"\n"
    parts = [text[start : start + 1024] for start in range(0, len(text), 1024)]
    return [b"%d: %s\n" % (node, part.removesuffix(b"\n")) for part in parts]


@given(st.lists(st.tuples(st.sampled_from([0, 1]), st.integers(0, 3500)), max_size=12), st.data())
def test_lines_are_whole_however_srun_broke_and_mixed_them(lines, data):
    queues = {0: [], 1: []}
    for number, (node, length) in enumerate(lines):
        queues[node] += as_srun_labels(node, b"%d" % number + b"x" * length)
    mixed = []
    while any(queues.values()):
        node = data.draw(st.sampled_from([node for node in (0, 1) if queues[node]]))
        mixed.append(queues[node].pop(0))
    expected = [b"%d: %d%s\n" % (node, i, b"x" * n) for i, (node, n) in enumerate(lines)]
    assert sorted(whole_lines(mixed)) == sorted(expected)


def test_what_srun_says_itself_and_a_line_that_was_cut_are_kept():
    said = [b"srun: error: node2: task 1: Killed\n", *as_srun_labels(10, b"y" * 2000)[:1]]
    assert list(whole_lines(said)) == said


@pytest.mark.parametrize(
    ("resources", "gres", "gpus"),
    [
        ("gpu:8", None, 8),
        ("gpu:v100:8(S:0-1)", None, 8),
        ("license:3,gpu:a100:4(S:0,2),gpu:mig:2", None, 6),
        ("gpu_memory:80", None, 0),
        ("license_gpu:3,gpu:2", None, 2),
        ("(null)", None, 0),
        # Those of a type are counted alone.
        ("gpu:v100:8(S:0-1),gpu:a100:4", "gpu:a100", 4),
        ("gpu:v100:8", "gpu", 8),
        ("gpu:8", "gpu:v100", 0),
    ],
)
def test_gpus_of_a_node_are_counted(resources, gres, gpus):
    assert slurm.gpus_of(resources, gres) == gpus


@pytest.mark.parametrize(
    ("setting", "command"),
    [
        ("accounting_storage/slurmdbd", "sacct"),
        ("accounting_storage/none", "squeue"),
        ("(null)", "squeue"),
    ],
)
def test_accounts_are_asked_only_where_a_database_keeps_them(monkeypatch, setting, command):
    answer = [("AccountingStorageHost   = db",), (f"AccountingStorageType   = {setting}",)]
    monkeypatch.setattr(slurm, "ask", lambda *_: answer)
    assert slurm.status_command() == command


WAITS = "reperf: runs on 3n8g, 4n4g wait until nodes are back that Slurm cannot use: node2 ({})\n"
OUT_OF_USE = ("down*", "drained", "draining", "fail", "idle*", "inval")
STARTS_LATER = ("idle~", "completing", "reserved", "powered_down")
THREE = {"topologies": ["2n8g", "3n8g", "4n4g"]}
TOO_LARGE = (
    "suite small: topology {}n8g is too large: {} of {} nodes of partition gpu have 8 devices or "
    "more; allowed: at most {}n8g"
)
WITHOUT = {"topologies": ["3n8g"], "options": ["--qos=high", "--exclude=node2"]}


@pytest.mark.parametrize(
    ("of", "node2", "said"),
    [
        ({"topologies": ["3n8g", "4n4g"]}, "mixed", ""),
        ({"topologies": ["2n8g"], "gres": "gpu:v100"}, "mixed", ""),
        # A suite on CPUs needs nodes with CPUs alone.
        ({"topologies": ["4n8g"], "on": "cpu"}, "mixed", ""),
        ({}, "mixed", TOO_LARGE.format(4, 3, 4, 3)),
        (WITHOUT, "mixed", TOO_LARGE.format(3, 2, 3, 2)),
        ({"partition": "a100"}, "mixed", "cluster.partition: a100; allowed: short, gpu"),
        *((THREE, state, WAITS.format(state)) for state in OUT_OF_USE),
        *((THREE, state, "") for state in STARTS_LATER),
    ],
)
def test_a_report_needs_nodes_that_can_hold_it_now_or_later(monkeypatch, capsys, of, node2, said):
    nodes = [("short", "16", "(null)", "login", "idle")]
    nodes += [("gpu*", "16", "gpu:v100:8", f"node{n}", "mixed") for n in (1, 3)]
    nodes += [("gpu*", "16", "gpu:v100:8", "node2", node2), ("gpu*", "16", "gpu:4", "node4", "mix")]
    asked = {"sinfo": nodes, "scontrol": [("node2",)]}
    monkeypatch.setattr(slurm, "ask", lambda command, *_: asked[command])
    monkeypatch.setattr(slurm.shutil, "which", lambda command: f"/usr/bin/{command}")
    refusal = pytest.raises(ReperfError, match=f"^{re.escape(said)}$")
    with refusal if "allowed" in said else nullcontext():
        slurm.check_cluster(report(**of))
    assert capsys.readouterr().err == ("" if "allowed" in said else said)


def test_a_slurm_that_is_not_there_or_does_not_answer_is_one_line(monkeypatch, tmp_path):
    program = tmp_path / "sinfo"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReperfError, match="no Slurm on this machine: sbatch not found"):
        slurm.check_cluster(report())
    with pytest.raises(ReperfError, match=r"^no Slurm on this machine: sinfo not found$"):
        slurm.ask("sinfo")
    program.write_text("#!/bin/sh\necho 'Unable to contact\nslurm controller' >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(ReperfError, match=r"^Slurm: Unable to contact slurm controller$"):
        slurm.ask("sinfo")
