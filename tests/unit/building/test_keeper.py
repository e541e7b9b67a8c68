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
        time.sleep(0.3)
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


def python(folder: Path, program: str) -> tuple[int, str, str]:
    """How a program ends in a folder, and what it says."""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout, ended.stderr


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
    """The shell that Snakemake started, the script, and the two processes below it."""
    chain = psutil.Process(workflow.pid).children()
    chain += chain[0].children()
    while len(chain) < 4:
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
    shell, *chain = chain_of(workflow)
    targets = dict(zip(("first", "second", "third"), chain, strict=True))
    targets |= {"workflow": workflow, "shell": shell}
    if target == "group":
        os.killpg(workflow.pid, number)
    else:
        targets[target].send_signal(number)
    wait_until(lambda: workflow.poll() is not None)
    wait_until(lambda: not processes_of(tmp_path))


def test_the_next_workflow_waits_for_what_a_killed_one_has_left(workflow, tmp_path: Path):
    workflow.kill()
    assert python(tmp_path, NEXT) == (0, "held\n", "")
    assert (tmp_path / "tidied").exists()
    assert not processes_of(tmp_path)


def test_a_script_whose_workflow_is_gone_does_not_begin(tmp_path: Path, monkeypatch):
    gone = subprocess.Popen(["true"])
    gone.wait()
    monkeypatch.setenv("REPERF_WORKFLOW", str(gone.pid))
    assert python(tmp_path, SCRIPT) == (1, "", "reperf: the workflow that started this is gone\n")
    assert not (tmp_path / "ready").exists()


@pytest.mark.parametrize("code", [0, 3])
def test_a_script_ends_as_its_work_does(tmp_path: Path, code):
    work = "import sys; from reperf.building.script import script\nwith script('log'): sys.exit({})"
    assert python(tmp_path, work.format(code)) == (code, "", "")
