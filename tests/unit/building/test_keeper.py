"""Scripts end with their workflow, whoever of them is killed, and the next one waits for them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import psutil
import pytest

# A workflow: it holds the folder and, as Snakemake does, has a shell start a script.
WORKFLOW = """
import signal, subprocess, sys
from reperf.building.hold import hold_folder
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that nohup started would ignore it
hold_folder(".")
subprocess.run(["bash", "-c", f"{sys.executable} script.py; exit $?"])
"""
# A script whose work has a forked process, one in a session of its own, and one without a parent.
SCRIPT = """
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
        time.sleep(1)
        Path("tidied").touch()
"""
NEXT = "from reperf.building.hold import hold_folder; hold_folder('.'); print('held')"


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def processes_of(folder: Path) -> list[psutil.Process]:
    """All that lives in a folder."""
    found = psutil.process_iter(["cwd", "status"])
    return [
        process
        for process in found
        if process.info["cwd"] == str(folder) and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


@pytest.fixture
def workflow(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """A workflow whose script has started all that it starts."""
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, "-c", WORKFLOW], cwd=tmp_path, start_new_session=True
    )
    wait_until((tmp_path / "ready").exists)
    yield process
    for left in processes_of(tmp_path):
        left.kill()
    process.wait()


def chain_of(workflow: subprocess.Popen) -> list[psutil.Process]:
    """The processes of the script: the one that Snakemake started, and those below it."""
    (shell,) = psutil.Process(workflow.pid).children()
    chain = shell.children()
    while len(chain) < 3:
        chain += [child for child in chain[-1].children() if "script.py" in child.cmdline()]
    return chain


SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.mark.parametrize(
    ("target", "number"),
    [
        *product(("workflow", "group", "first", "second"), SIGNALS),
        ("shell", signal.SIGKILL),
        # The other processes of the chain ask it to end by no other one.
        *product(("third",), (signal.SIGKILL, signal.SIGTERM)),
    ],
)
def test_whoever_is_killed_nothing_is_left(workflow, tmp_path: Path, target, number):
    if target == "group":
        os.killpg(workflow.pid, number)
    elif target == "workflow":
        workflow.send_signal(number)
    elif target == "shell":
        psutil.Process(workflow.pid).children()[0].send_signal(number)
    else:
        chain_of(workflow)[("first", "second", "third").index(target)].send_signal(number)
    wait_until(lambda: workflow.poll() is not None)
    wait_until(lambda: not processes_of(tmp_path))


def test_the_next_workflow_waits_for_what_a_killed_one_has_left(workflow, tmp_path: Path):
    workflow.kill()
    answer = subprocess.run(
        [sys.executable, "-c", NEXT], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (answer.stdout, answer.stderr) == ("held\n", "")
    assert (tmp_path / "tidied").exists()
    assert not processes_of(tmp_path)


def test_a_workflow_that_lives_shares_its_folder_with_nobody_else(workflow, tmp_path: Path):
    answer = subprocess.run(
        [sys.executable, "-c", NEXT], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 1
    assert f"in use by process {workflow.pid}; allowed: one workflow" in answer.stderr


def test_a_script_whose_workflow_is_gone_does_not_begin(tmp_path: Path):
    (tmp_path / "script.py").write_text(SCRIPT)
    gone = subprocess.Popen(["true"])
    gone.wait()
    answer = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env=os.environ | {"REPERF_WORKFLOW": str(gone.pid)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert answer.stderr == "reperf: the workflow that started this is gone\n"
    assert not (tmp_path / "ready").exists()


def test_a_script_ends_as_its_work_does(tmp_path: Path):
    work = "import sys; from reperf.building.script import script\nwith script('log'): sys.exit({})"
    for code in (0, 3):
        command = [sys.executable, "-c", work.format(code)]
        assert subprocess.run(command, cwd=tmp_path, check=False).returncode == code
