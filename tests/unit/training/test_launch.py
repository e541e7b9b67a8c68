"""A launch ends, whatever its processes do, and none of them is left."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.training import launch

from tests.helpers.refusal import cannot_run

# Launching kills every descendant of the process that launches, so that it has one of its own.
PROGRAM = """
import json, os, sys
from dataclasses import asdict
from pathlib import Path
from reperf.errors import ReperfError
from reperf.training.launch import Command, launch
time_limit, trainers, *servers = sys.argv[1:]
trainers, *servers = (
    Command(["bash", "-c", script], os.environ | {"GREETING": "hello"})
    for script in (trainers, *servers)
)
try:
    outcome = launch(
        trainers, *servers, log=Path("log"), time_limit=float(time_limit),
        world_size=3, servers_in_all=2 * len(servers),
    )
except ReperfError as error:
    sys.exit(f"reperf: {error}")
heard = {
    name: [(one.rank, one.iteration) for one in getattr(outcome, name)]
    for name in ("last_heard", "servers_heard")
}
sets = {name: sorted(getattr(outcome, name)) for name in ("done", "silent")}
print(json.dumps(asdict(outcome) | heard | sets))
"""
# Named by a number that nobody else sleeps for, so that a survivor can be found: tests of this file
# run in several processes at once.
NAP = f"31415.{os.getpid()}"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def survivors() -> list[psutil.Process]:
    found = psutil.process_iter(["cmdline"])
    return [process for process in found if NAP in (process.info["cmdline"] or ())]


def launch_apart(*scripts: str, time_limit: float = 240) -> subprocess.Popen:
    command = [sys.executable, "-c", PROGRAM, str(time_limit), *scripts]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **pipes)


def outcome_of(*scripts: str, time_limit: float = 240) -> dict:
    """How a launch of trainers ended, and of servers, where there is a script for them, too."""
    said, trouble = launch_apart(*scripts, time_limit=time_limit).communicate(timeout=300)
    assert not trouble
    assert survivors() == []
    return json.loads(said)


def test_all_that_is_printed_reaches_the_log_and_steps_stand_in_lines_of_their_own():
    said = ["$GREETING", "[default0]::::MLLOG {1}", "[x] text", "lost: :::MLLOG {2}"]
    script = "; ".join(f'echo "{line}"' for line in said)
    outcome = outcome_of(f"{script}; echo error >&2; exit 3")
    kept = ["hello", ":::MLLOG {1}", "[x] text", "lost: ", ":::MLLOG {2}", "error"]
    assert Path("log").read_text().splitlines() == kept
    assert (outcome["exit_code"], outcome["timed_out"]) == (3, False)


def test_a_launch_past_its_limit_ends_with_all_of_its_processes():
    # One in a session of its own, one whose parent is gone, one that ignores being asked.
    script = (
        f"setsid sleep {NAP} & (sleep {NAP} & exit) ; "
        f"bash -c 'trap : TERM HUP; sleep {NAP}' & sleep {NAP}"
    )
    outcome = outcome_of(script, time_limit=0.5)
    assert (outcome["exit_code"], outcome["timed_out"]) == (None, True)
    assert outcome["seconds"] >= 0.5


@pytest.mark.parametrize(("end", "code"), [("exit 0", 0), ("kill -9 $$", -signal.SIGKILL)])
def test_a_launch_that_ends_leaves_no_process_either(end, code):
    assert outcome_of(f"setsid sleep {NAP} & {end}")["exit_code"] == code


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_launch_that_is_asked_to_end_takes_its_processes_along():
    process = launch_apart(f"setsid sleep {NAP} & sleep {NAP}")
    wait_until(lambda: len(survivors()) == 2)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=240)
    assert json.loads(said)["stopped"] == "SIGTERM"
    assert survivors() == []


def test_a_launch_knows_how_each_rank_was_last_heard_of():
    outcome = outcome_of("""
        echo 'rank 1: started on host, process 1'
        echo '[1]: rank 2 (stage 1): iteration 40'
        echo 'rank 2: done'
        echo 'rank 0: nothing new for 80 s'
        echo '[1]: rank 2 (stage 1): nothing new for 10 s'
        echo ':::MLLOG {"key": "tracked_stats", "value": {"iteration": 60}}'
        echo ':::MLLOG {"key": "seed", "value": 1}'
        echo ':::MLLOG {"value": {"iteration": 7}, "metadata": {"rank": 1}}'
        echo ':::MLLOG {"cut'
    """)
    assert outcome["last_heard"] == [[0, 60], [1, 7], [2, 40]]
    assert 0 < outcome["seconds_to_print"] < outcome["seconds"]
    assert outcome["done"] == [2]


@pytest.mark.parametrize(
    ("ranks", "silent"),
    [
        ("rank 0: nothing new for 20 s\n", {1}),
        # The next time it is to say so is 40 s after its news.
        ("rank 0: nothing new for 20 s\nrank 1: nothing new for 20 s\n", set()),
        ("", set()),
        ("rank 0: nothing new for 20 s\nrank 1: done\n", set()),
    ],
)
def test_the_rank_is_silent_that_does_not_say_that_it_lives_where_others_do(ranks, silent):
    listener = launch._Listener(io.BytesIO(), time.monotonic(), world_size=2)
    news = b"rank 0: iteration 3\nrank 1: iteration 3\n"
    listener.listen(io.BytesIO(news + ranks.encode()))
    listener.started -= 35
    assert listener.silent() == silent


SERVE = "echo server 0: listens; echo server 1: listens;"


def test_servers_start_first_and_are_asked_to_end_after_the_last_trainer():
    serve = f"trap 'echo asked; exit' TERM; sleep 0.2; {SERVE} sleep {NAP} & wait"
    outcome = outcome_of("echo trains", serve)
    said = ["server 0: listens", "server 1: listens", "trains", "asked"]
    assert Path("log").read_text().splitlines() == said
    assert (outcome["exit_code"], outcome["servers_ended"]) == (0, None)
    assert [server for server, _ in outcome["servers_heard"]] == [0, 1]


@pytest.mark.parametrize(
    ("trainers", "exit_code"),
    [
        (f"echo > fifo; sleep {NAP}", None),
        # Trainers may see it first, which fail then, too.
        ("exec 3> fifo; exit 1", 1),
    ],
    ids=["alone", "with-trainers"],
)
def test_a_server_that_ends_before_the_trainers_ends_the_launch(trainers, exit_code):
    os.mkfifo("fifo")  # which the trainers open for as long as the server waits
    outcome = outcome_of(trainers, f"{SERVE} cat fifo; exit 3")
    assert (outcome["exit_code"], outcome["servers_ended"]) == (exit_code, 3)
    assert not outcome["timed_out"]


@pytest.mark.parametrize("serve", ["echo server 0: listens;", SERVE])
def test_hanging_servers_end_at_the_time_limit(serve):
    """Before they are heard of, or later."""
    outcome = outcome_of(f"sleep {NAP}", f"trap '' TERM; {serve} sleep {NAP}", time_limit=1)
    assert outcome["timed_out"]
    assert len(outcome["servers_heard"]) == serve.count("server")


# What is no step, although it looks like one.
VALUES = [b'"abc"', b"NaN", b"Infinity", b"true", b"-3", b"[2]", b"9" * 4000, b"9" * 5000]
ODD_LINES = [
    *(b':::MLLOG {"value": {"iteration": %s}}' % value for value in VALUES),
    b":::MLLOG [1]",
    b":::MLLOG " + b"[" * 100_000,
    b':::MLLOG {"value": ' + b"[" * 100_000 + b"}",
    b':::MLLOG {"key": ["a", "list"], "value": 1}',
    b':::MLLOG {"key": "\\ud800"}',
    *(b":::MLLOG \xff\xfe\x00{", b":::MLLOG", b":::MLLOG 1", b":::MLLOG null"),
    b"rank %s: iteration 1" % (b"1" * 5000),
    *(b"rank 7: iteration 1", b"rank -1: iteration 1"),
    b"rank 1: iteration %s" % (b"1" * 5000),
    *(b"\0" * 1000, b"\r\r\x1b[31m", b""),
]


@given(
    st.lists(st.sampled_from(ODD_LINES) | st.binary(max_size=60) | st.just(b"x" * 70_000)),
    st.booleans(),
)
def test_all_that_is_written_is_kept_and_only_steps_are_noted(lines, ends):
    said = b"\n".join(lines) + b"\n" * ends
    log = io.BytesIO()
    listener = launch._Listener(log, started=0.0, world_size=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "LONGEST_PIECE", 1 << 16)
        listener.listen(launch.pieces(io.BytesIO(said)))
    assert log.getvalue() == said
    assert listener.trouble is None
    assert set(listener.heard) <= {0, 1}
    assert {one.iteration for one in listener.heard.values()} <= {None, 1}


def test_a_log_that_cannot_be_written_ends_the_launch_in_one_line():
    if not Path("/dev/full").exists():
        cannot_run("/dev/full, a file of Linux's that is always full")
    Path("log").symlink_to("/dev/full")
    process = launch_apart(f"echo text; sleep {NAP}")
    _, trouble = process.communicate(timeout=300)
    assert (process.returncode, trouble) == (
        1,
        f"reperf: log: cannot be written: {os.strerror(28)}\n",
    )
    assert survivors() == []
