"""The starters of frameworks that have no launcher for one node of several."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from reperf.systems import TRAINERS

SAY = "import os; os.write(1, ' '.join(os.environ.get(n, '-') for n in {}).encode() + b'\\n')"


def start(*command: str) -> subprocess.Popen:
    """A Python process that finds the trainers' modules."""
    return subprocess.Popen(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(TRAINERS.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start_ranks(program: str, count: int = 2) -> subprocess.Popen:
    """Ranks that run a program; each has its number as RANK."""
    ranks = [{"RANK": str(rank)} for rank in range(count)]
    code = "from trainers.launchers.ranks import run_ranks; "
    return start("-c", f"{code}run_ranks(['-c', {program!r}], {ranks}, 4)")


def test_each_rank_runs_with_its_own_variables():
    said, complaints = start_ranks(SAY.format(["RANK"]), count=3).communicate(timeout=240)
    assert sorted(said.split()) == ["0", "1", "2"]
    assert complaints == ""


@pytest.mark.parametrize(
    ("last_act", "end"),
    [("os.kill(os.getpid(), 9)", "SIGKILL"), ("os._exit(3)", "status 3")],
)
def test_when_a_rank_fails_the_others_end_and_it_is_named(last_act: str, end: str):
    program = (
        f"import os, time\nif os.environ['RANK'] == '1': {last_act}\n"
        "os.write(1, f'{os.getpid()}\\n'.encode()); time.sleep(60)"
    )
    ranks = start_ranks(program)
    said, complaints = ranks.communicate(timeout=240)
    assert ranks.returncode == 1
    assert complaints == f"rank 5 on {socket.gethostname()} ended with {end}\n"
    assert not any(psutil.pid_exists(int(pid)) for pid in said.split())


def test_the_rank_that_failed_first_is_named_and_not_one_that_missed_it(tmp_path: Path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    program = f"""
import os, time
if os.environ["RANK"] == "1":
    open({str(fifo)!r}, "w")
    os.kill(os.getpid(), 9)
open({str(fifo)!r}).read()  # up to the other's end
time.sleep(0.3)
os._exit(3)
"""
    _, complaints = start_ranks(program).communicate(timeout=240)
    assert complaints == f"rank 5 on {socket.gethostname()} ended with SIGKILL\n"


def test_a_starter_that_looks_too_late_names_the_rank_that_a_signal_ended():
    program = """
import os, signal
if os.environ["RANK"] == "1":
    os.kill(os.getppid(), signal.SIGSTOP)
    os.kill(os.getpid(), 9)
os.write(1, b"here\\n")
while open(f"/proc/{os.getppid()}/stat").read().rsplit(") ", 1)[1][0] != "T":
    pass
os._exit(3)
"""
    ranks = start_ranks(program)
    assert ranks.stdout.readline() == "here\n"
    children = psutil.Process(ranks.pid).children()
    while any(child.status() != psutil.STATUS_ZOMBIE for child in children):
        time.sleep(0.01)
    ranks.send_signal(signal.SIGCONT)
    _, complaints = ranks.communicate(timeout=60)
    assert complaints == f"rank 5 on {socket.gethostname()} ended with SIGKILL\n"


def test_ranks_end_with_their_starter():
    ranks = start_ranks("import os, time; os.write(1, b'here\\n'); time.sleep(60)")
    assert [ranks.stdout.readline() for _ in range(2)] == ["here\n", "here\n"]
    children = psutil.Process(ranks.pid).children()
    ranks.terminate()
    assert ranks.wait(timeout=240) == 1
    assert len(children) == 2
    assert not any(child.is_running() for child in children)


def test_a_launcher_that_is_not_told_where_ranks_meet_says_so_and_waits_for_nobody():
    """A default would have the ranks of further nodes wait at their own address."""
    flags = ("--node-rank=1", "--devices-per-node=1", "--port=7000", "train.py")
    launcher = start("-m", "trainers.launchers.ranks", *flags)
    _, complaints = launcher.communicate(timeout=240)
    assert launcher.returncode == 2
    assert complaints.endswith("the following arguments are required: --nodes, --head\n")


def start_workers(
    folder: Path, hosts: str, variables: list[str], *, node_rank: int = 0, devices: int = 2
) -> list[str]:
    """What TensorFlow's workers of one node see of some variables, a line for each worker."""
    (folder / "train.py").write_text(SAY.format(variables))
    flags = [f"--hosts={hosts}", f"--node-rank={node_rank}", "--port=7000"]
    flags += [f"--devices-per-node={devices}", str(folder / "train.py")]
    said, complaints = start("-m", "trainers.launchers.tensorflow", *flags).communicate(timeout=240)
    assert complaints == ""
    return sorted(said.splitlines())


def test_one_device_alone_is_a_process_without_a_cluster(tmp_path: Path):
    said = start_workers(tmp_path, "127.0.0.1", ["LOCAL_RANK", "TF_CONFIG"], devices=1)
    assert said == ["0 -"]


def test_each_device_of_one_node_is_a_tensorflow_worker_with_a_port_of_its_own(tmp_path: Path):
    first, second = map(json.loads, start_workers(tmp_path, "127.0.0.1", ["TF_CONFIG"]))
    assert [first["task"]["index"], second["task"]["index"]] == [0, 1]
    assert first["cluster"] == second["cluster"]
    ports = {worker.partition("127.0.0.1:")[2] for worker in first["cluster"]["worker"]}
    assert len(ports) == 2
    assert all(map(str.isdigit, ports))


def test_of_several_nodes_each_device_is_a_tensorflow_worker(tmp_path: Path):
    lines = start_workers(tmp_path, "one,two", ["LOCAL_RANK", "TF_CONFIG"], node_rank=1)
    everybody = ["one:7000", "one:7001", "two:7000", "two:7001"]
    assert [line.partition(" ")[0] for line in lines] == ["0", "1"]
    assert [json.loads(line.partition(" ")[2]) for line in lines] == [
        {"cluster": {"worker": everybody}, "task": {"type": "worker", "index": index}}
        for index in (2, 3)
    ]
