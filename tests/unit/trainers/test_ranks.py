"""The starters of frameworks that have no launcher for one node of several."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from reperf.systems import TRAINERS

from tests.helpers.waiting import wait_until

SAY = "import os; os.write(1, ' '.join(os.environ.get(n, '-') for n in {}).encode() + b'\\n')"


def start(*command: str, cwd: Path | None = None) -> subprocess.Popen:
    """A Python process that finds the trainers' modules."""
    environment = {**os.environ, "PYTHONPATH": str(TRAINERS.parent)}
    how = {"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *command], cwd=cwd, **how)


def start_ranks(program: str, count: int = 2) -> subprocess.Popen:
    """Ranks that run a program; each has its number as RANK."""
    ranks = [{"RANK": str(rank)} for rank in range(count)]
    code = "from trainers.launchers.ranks import run_ranks; "
    return start("-c", f"{code}run_ranks(['-c', {program!r}], {ranks}, 4)")


def test_each_rank_runs_with_its_own_variables():
    said, complaints = start_ranks(SAY.format(["RANK"]), count=3).communicate(timeout=240)
    assert sorted(said.split()) == ["0", "1", "2"]
    assert complaints == ""


def test_when_a_rank_fails_the_others_end_and_it_is_named(tmp_path: Path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    program = f"""
import os, time
if os.environ["RANK"] == "1": open({str(fifo)!r}).read(); os._exit(3)  # after the other's word
os.write(1, b"%d\\n" % os.getpid())
open({str(fifo)!r}, "w").close(); time.sleep(60)"""
    ranks = start_ranks(program)
    said, complaints = ranks.communicate(timeout=240)
    assert ranks.returncode == 1
    assert complaints == f"rank 5 on {socket.gethostname()} ended with status 3\n"
    assert not psutil.pid_exists(int(said))


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
    wait_until(
        lambda: all(one.status() == psutil.STATUS_ZOMBIE for one in children), "the ranks to end"
    )
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


@pytest.mark.parametrize(
    ("hosts", "node", "devices", "workers"),
    [
        ("127.0.0.1", 0, 1, None),  # a process without a cluster
        ("127.0.0.1", 0, 2, r"(127\.0\.0\.1:\d+ ?){2}"),  # each at a port of its own
        ("one,two", 1, 2, "one:7000 one:7001 two:7000 two:7001"),
    ],
)
def test_each_device_is_a_tensorflow_worker(hosts, node, devices, workers, tmp_path):
    (tmp_path / "train.py").write_text(SAY.format(["LOCAL_RANK", "TF_CONFIG"]))
    flags = [f"--hosts={hosts}", f"--node-rank={node}", f"--devices-per-node={devices}"]
    command = "-m", "trainers.launchers.tensorflow", *flags, "--port=7000", "train.py"
    said, complaints = start(*command, cwd=tmp_path).communicate(timeout=240)
    assert complaints == ""
    ranks, configs = zip(*(one.split(" ", 1) for one in sorted(said.splitlines())), strict=True)
    assert ranks == ("0", "1")[:devices]
    if workers is None:
        assert configs == ("-",)
        return
    first, second = map(json.loads, configs)
    assert first["cluster"] == second["cluster"]
    everybody = first["cluster"]["worker"]
    assert re.fullmatch(workers, " ".join(everybody))
    assert len(set(everybody)) == len(everybody)
    assert [one["task"]["index"] for one in (first, second)] == [2 * node, 2 * node + 1]
