"""What is asked of Slurm, and what is made of its answers."""

import os
import subprocess
from collections.abc import Sequence

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


def report(topologies: Sequence[str] = ("1n1g", "4n8g"), **cluster: object) -> Report:
    suite = {"name": "small", "workload": "resnet50", "precision": "fp32", "batch_size": 4}
    config = {
        "suites": [suite | {"input": "synthetic", "systems": ["pytorch"]}],
        "topologies": list(topologies),
        "time_limit": 90,
        "cluster": {"nodes": 4, "devices_per_node": 8} | cluster,
    }
    return resolve(load_report(config))


def asked(topology: str, of: Report, **changes: object) -> dict:
    """What a run of a report asks for, with changes to the run."""
    plan = next(plan for plan in Plans(of).runs.values() if plan.run.topology == topology)
    plan = plan.model_copy(update={"run": plan.run.model_copy(update=changes)})
    return slurm.resources_of_job(of, [plan], lambda _: plan)


def test_a_run_asks_for_its_nodes_and_devices_and_on_this_machine_for_nothing():
    assert asked("4n8g", report()) == {
        "tasks": 4,
        "cpus_per_task": 8,
        "sbatch_options": "--nodes=4 --ntasks-per-node=1 --gpus-per-node=8 --exclusive --mem=0",
        "runtime": 7,  # a minute and a half, rounded up, and five to spare
    }
    assert asked("4n8g", report().model_copy(update={"cluster": None})) == {}


def test_only_what_differs_between_jobs_is_a_function_of_them():
    of = report()
    plans = {plan.run.topology: plan for plan in Plans(of).runs.values()}
    resources = slurm.resources_of_job(of, plans.values(), plans.__getitem__)
    assert resources["runtime"] == 7
    assert [resources["tasks"](topology) for topology in ("1n1g", "4n8g")] == [1, 4]


def test_a_run_on_cpus_asks_for_no_gpus():
    """Whatever the other suites of its report train on."""
    on_cpus, on_gpus = (asked("4n8g", report(), device=device) for device in ("cpu", "cuda"))
    assert on_cpus["sbatch_options"] == "--nodes=4 --ntasks-per-node=1 --exclusive --mem=0"
    assert "--gpus-per-node=8" in on_gpus["sbatch_options"]


def test_a_run_has_cpus_for_its_servers_and_loaders():
    of = report(cpus_per_device=2)
    assert asked("4n8g", of)["cpus_per_task"] == 16
    assert asked("4n8g", of, servers=Servers(per_node=3))["cpus_per_task"] == 19
    loaders = of.model_copy(update={"loader_threads": 6})
    assert asked("4n8g", loaders)["cpus_per_task"] == 48


def test_what_the_configuration_says_is_asked_for():
    of = report(
        partition="v100",
        account="bench",
        exclusive=False,
        cpus_per_device=6,
        memory_mb=64000,
        spare_minutes=10,
        options=["--qos=high", "--constraint=ib"],
    )
    assert asked("1n1g", of) == {
        "tasks": 1,
        "cpus_per_task": 6,
        "sbatch_options": (
            "--nodes=1 --ntasks-per-node=1 --gpus-per-node=1 --qos=high --constraint=ib"
        ),
        "runtime": 12,
        "mem_mb": 64000,
        "slurm_partition": "v100",
        "slurm_account": "bench",
    }


def test_each_node_puts_its_number_into_the_command():
    words = ["torchrun", "--node-rank={node_rank}", "train.py", "--data", "my images", ""]
    line = "exec torchrun --node-rank=\"$SLURM_NODEID\" train.py --data 'my images' '' 2>&1"
    assert _on_its_node(words) == ["sh", "-c", line]


def shown_by(shell: list[str]) -> tuple[int, str]:
    answer = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert answer.stderr == ""
    return answer.returncode, answer.stdout


def test_lines_of_a_site_come_before_the_command_and_must_end_well():
    before = ["load() { export LOADED=$1; }", "load 'its own'", "[ -n x ] || echo never"]
    assert shown_by(_on_its_node(["printenv", "LOADED"], before)) == (0, "its own\n")
    assert shown_by(_on_its_node(["sh", "-c", "exit 3"], before)) == (3, "")
    said = "BeforeError: ls /nowhere ended with status 2\n"
    status, shown = shown_by(_on_its_node(["echo", "launched"], ["ls /nowhere", *before]))
    assert (status, shown.splitlines(True)[-1]) == (2, said)


def test_gpus_of_a_type_are_asked_for_by_gres_and_counted_alone(monkeypatch):
    of = report(topologies=["2n8g"], gres="gpu:v100")
    asked_for = asked("2n8g", of)["sbatch_options"]
    assert asked_for == "--nodes=2 --ntasks-per-node=1 --gres=gpu:v100:8 --exclusive --mem=0"
    check(monkeypatch, of)
    assert slurm.gpus_of("gpu:v100:8(S:0-1),gpu:a100:4", "gpu:a100") == 4
    assert slurm.gpus_of("gpu:v100:8", "gpu") == 8
    assert slurm.gpus_of("gpu:8", "gpu:v100") == 0


def test_a_container_on_a_node_sees_the_gpus_that_slurm_gives_its_job_there():
    command = inside(["printenv", "CUDA_VISIBLE_DEVICES"], VISIBLE_GPUS)
    cleared = ["env", "--unset=CUDA_VISIBLE_DEVICES", *command]  # as engines clear all of it
    for names in ("2,3", "GPU-8f2"):
        said = subprocess.check_output(
            _on_its_node(cleared),
            env={"PATH": os.defpath, "CUDA_VISIBLE_DEVICES": names},
            text=True,
        )
        assert said == f"{names}\n"


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
    ("resources", "gpus"),
    [
        ("gpu:8", 8),
        ("gpu:v100:8(S:0-1)", 8),
        ("license:3,gpu:a100:4(S:0,2),gpu:mig:2", 6),
        ("gpu_memory:80", 0),
        ("license_gpu:3,gpu:2", 2),
        ("(null)", 0),
    ],
)
def test_gpus_of_a_node_are_counted(resources, gpus):
    assert slurm.gpus_of(resources) == gpus


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


NODES = {
    "login": ("short", "16", "(null)", "idle"),
    **{f"node{n}": ("gpu*", "16", "gpu:v100:8", "mixed") for n in (1, 2, 3)},
    "node4": ("gpu*", "16", "gpu:4", "allocated"),
}


def check(monkeypatch, of: Report, node2: str = "mixed") -> None:
    """Check a report against the cluster, whose second node is in a state."""
    states = {name: state for name, (*_, state) in NODES.items()} | {"node2": node2}
    nodes = [(*node, name, states[name]) for name, (*node, _) in NODES.items()]
    monkeypatch.setattr(slurm, "ask", lambda *_: nodes)
    monkeypatch.setattr(slurm.shutil, "which", lambda command: f"/usr/bin/{command}")
    slurm.check_cluster(of)


def test_a_topology_needs_enough_nodes_with_enough_gpus(monkeypatch):
    check(monkeypatch, report(topologies=["3n8g", "4n4g"]))
    line = "topology 4n8g is too large: 3 of 4 nodes of partition gpu have 8 devices or more; "
    with pytest.raises(ReperfError, match=f"{line}allowed: at most 3n8g"):
        check(monkeypatch, report())


@pytest.mark.parametrize(
    ("states", "must_wait"),
    [
        (("down*", "drained", "draining", "fail", "idle*", "inval"), True),
        # These start jobs sooner or later.
        (("idle~", "completing", "reserved", "powered_down"), False),
    ],
)
def test_runs_that_no_usable_nodes_can_hold_are_told_to_wait(
    monkeypatch, capsys, states, must_wait
):
    for state in states:
        check(monkeypatch, report(topologies=["2n8g", "3n8g", "4n4g"]), state)
        line = (
            "reperf: runs on 3n8g, 4n4g wait until nodes are back that Slurm cannot use: "
            f"node2 ({state})\n"
        )
        assert capsys.readouterr().err == line * must_wait


def test_a_suite_on_cpus_needs_nodes_with_cpus_alone(monkeypatch):
    of = report(topologies=["4n8g"])
    suites = [one.model_copy(update={"device": "cpu"}) for one in of.suites]
    check(monkeypatch, of.model_copy(update={"suites": tuple(suites)}))


def test_an_unknown_partition_is_refused_with_those_that_there_are(monkeypatch):
    with pytest.raises(ReperfError, match=r"^cluster.partition: a100; allowed: short, gpu$"):
        check(monkeypatch, report(partition="a100"))


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
