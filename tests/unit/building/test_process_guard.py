"""Steps end with their workflow, whoever of them is killed, and the next one waits for them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import psutil
import pytest

from tests.helpers.waiting import wait_until

# A workflow: it locks the folder and, as Snakemake does, has a shell start a step.
WORKFLOW = """
import signal, subprocess, sys
from reperf.building.work_folder import lock_folder
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that nohup started would ignore it
lock_folder(".")
subprocess.run(["bash", "-c", f"{sys.executable} step.py; exit $?"])
"""
# A step with a forked process, one in a session of its own, and one that has lost its parent.
STEP = """
import os, subprocess, sys, time
from pathlib import Path
from reperf.building.script import script
with script("log"):
    if os.fork() == 0:
        time.sleep(600)
    subprocess.Popen(["setsid", "sleep", "600"])
    subprocess.run(["bash", "-c", "sleep 600 & exit"])
    try:
        Path("ready").touch()
        time.sleep(600)
    finally:
        time.sleep(0.3)
        Path("tidied").touch()
"""
NEXT = "from reperf.building.work_folder import lock_folder; lock_folder('.'); print('locked')"
DEAF = """
import signal, sys, time
from reperf.building import process_guard, script
process_guard.SECONDS_TO_TIDY_UP = 0.5
with script.script("log"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("ready", flush=True)
    time.sleep(600)
"""
ENDS = "import sys; from reperf.building.script import script\nwith script('log'): sys.exit({})"


def catches_sigterm(process: int) -> bool:
    """Whether a process has a handler for SIGTERM, as its file of the kernel's says."""
    status = Path(f"/proc/{process}/status").read_text().split()
    return bool(int(status[status.index("SigCgt:") + 1], 16) >> (signal.SIGTERM - 1) & 1)


def processes_of(folder: Path) -> list[psutil.Process]:
    """All that lives in a folder."""
    return [
        process
        for process in psutil.process_iter(["cwd", "status"])
        if process.info["cwd"] == str(folder) and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def python(folder: Path, program: str) -> tuple[int, str, str]:
    """How a program ends in a folder, and what it says."""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture
def workflow(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """A workflow whose step has started all that it starts."""
    (tmp_path / "step.py").write_text(STEP)
    process = subprocess.Popen(
        [sys.executable, "-c", WORKFLOW], cwd=tmp_path, start_new_session=True
    )
    wait_until((tmp_path / "ready").exists, "the step")
    yield process
    for left in processes_of(tmp_path):
        left.kill()
    process.wait()


SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.mark.parametrize(
    ("target", "number"),
    [
        *product(("workflow", "group", "guard"), SIGNALS),
        ("shell", signal.SIGKILL),
        # The guard asks it to end by no other signal.
        *product(("step",), (signal.SIGKILL, signal.SIGTERM)),
    ],
)
def test_whoever_is_killed_nothing_is_left(workflow, tmp_path: Path, target, number):
    (shell,) = psutil.Process(workflow.pid).children()
    (guard,) = shell.children()
    (step,) = (child for child in guard.children() if "step.py" in child.cmdline())
    if target == "group":
        os.killpg(workflow.pid, number)
    else:
        targets = {"workflow": workflow, "shell": shell, "guard": guard, "step": step}
        targets[target].send_signal(number)
    wait_until(lambda: workflow.poll() is not None, "the workflow's end")
    wait_until(lambda: not processes_of(tmp_path), "the end of all others")
    was_killed = (target, number) == ("step", signal.SIGKILL)
    assert (tmp_path / "tidied").exists() != was_killed


def test_a_step_that_does_not_heed_its_guard_is_killed(tmp_path: Path):
    command = [sys.executable, "-c", DEAF]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as guard:
        assert guard.stdout.readline() == "ready\n"
        # It may begin to guard after the step works.
        wait_until(lambda: catches_sigterm(guard.pid), "the guard")
        guard.terminate()
    assert guard.returncode == 128 + signal.SIGKILL
    assert not processes_of(tmp_path)


def test_the_next_workflow_waits_for_what_a_killed_one_has_left(workflow, tmp_path: Path):
    workflow.kill()
    assert python(tmp_path, NEXT) == (0, "locked\n", "")
    assert (tmp_path / "tidied").exists()
    assert not processes_of(tmp_path)


def test_a_step_ends_as_its_work_does_and_does_not_begin_without_its_workflow(
    tmp_path: Path, monkeypatch
):
    assert [python(tmp_path, ENDS.format(code)) for code in (0, 3)] == [(0, "", ""), (3, "", "")]
    gone = subprocess.Popen(["true"])
    gone.wait()
    monkeypatch.setenv("REPERF_CALL", f"here {gone.pid} today")
    assert python(tmp_path, STEP) == (1, "", "reperf: the workflow that started this is gone\n")
    assert not (tmp_path / "ready").exists()
