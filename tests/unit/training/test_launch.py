"""A launch ends, whatever its processes do, and none of them is left."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.training import launch

from tests.helpers.refusal import cannot_run
from tests.helpers.waiting import wait_until

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
    name: [(rank, one.iteration) for rank, one in sorted(getattr(outcome, name).items())]
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


# One in a session of its own, one whose parent is gone, one that ignores being asked.
STUBBORN = (
    f"setsid sleep {NAP} & (sleep {NAP} & exit) ; "
    f"bash -c 'trap : TERM HUP; sleep {NAP}' & sleep {NAP}"
)
PRINTED = ["$GREETING", "[default0]::::MLLOG {1}", "[x] text", "lost: :::MLLOG {2}"]
PRINTS = "; ".join(f'echo "{line}"' for line in PRINTED) + "; echo error >&2; exit 3"
SIGNS = """
    echo 'rank 1: started on host, process 1'
    echo '[1]: rank 2 (stage 1): iteration 40'
    echo 'rank 2: done'
    echo 'rank 0: nothing new for 80 s'
    echo '[1]: rank 2 (stage 1): nothing new for 10 s'
    echo ':::MLLOG {"key": "tracked_stats", "value": {"iteration": 60}}'
    echo ':::MLLOG {"key": "seed", "value": 1}'
    echo ':::MLLOG {"value": {"iteration": 7}, "metadata": {"rank": 1}}'
    echo ':::MLLOG {"cut'
"""
SERVER = "echo server 0: listens;"
BOTH = f"{SERVER} echo server 1: listens;"
HEARD = [[0, None], [1, None]]
END_FIRST = f"{BOTH} cat fifo; exit 3"
# Which the trainers open for as long as the server waits.
HOLD, HOLD_AND_FAIL = f"echo > fifo; sleep {NAP}", "exec 3> fifo; exit 1"
LAUNCHES = {
    "all that is printed reaches the log, and steps stand in lines of their own": (
        *([PRINTS], 240, {"exit_code": 3, "timed_out": False}),
        ["hello", ":::MLLOG {1}", "[x] text", "lost: ", ":::MLLOG {2}", "error"],
    ),
    "a launch past its limit": ([STUBBORN], 0.5, {"exit_code": None, "timed_out": True}, []),
    "a launch that ends well": ([f"setsid sleep {NAP} & exit 0"], 240, {"exit_code": 0}, []),
    "a launch that is killed": ([f"setsid sleep {NAP} & kill -9 $$"], 240, {"exit_code": -9}, []),
    "it knows how each rank was last heard of": (
        *([SIGNS], 240, {"last_heard": [[0, 60], [1, 7], [2, 40]], "done": [2]}, None),
    ),
    "servers start first, and are asked to end after the last trainer": (
        ["echo trains", f"trap 'echo asked; exit' TERM; sleep 0.2; {BOTH} sleep {NAP} & wait"],
        *(240, {"exit_code": 0, "servers_ended": None, "servers_heard": HEARD}),
        ["server 0: listens", "server 1: listens", "trains", "asked"],
    ),
    "a server that ends first": (
        *(
            [HOLD, END_FIRST],
            240,
            {"exit_code": None, "servers_ended": 3, "timed_out": False},
            None,
        ),
    ),
    "trainers that see it first, and fail then, too": (
        *([HOLD_AND_FAIL, END_FIRST], 240, {"exit_code": 1, "servers_ended": 3}, None),
    ),
    "servers that hang before they are heard of": (
        [f"sleep {NAP}", f"trap '' TERM; {SERVER} sleep {NAP}"],
        *(1, {"timed_out": True, "servers_heard": HEARD[:1]}, None),
    ),
    "servers that hang later": (
        [f"sleep {NAP}", f"trap '' TERM; {BOTH} sleep {NAP}"],
        *(1, {"timed_out": True, "servers_heard": HEARD}, None),
    ),
}


@pytest.mark.parametrize(("scripts", "limit", "ends", "log"), LAUNCHES.values(), ids=LAUNCHES)
def test_a_launch_ends_whole_and_says_how(scripts, limit, ends, log):
    """Of trainers, and of servers, where there is a script for them, too."""
    os.mkfifo("fifo")
    said, trouble = launch_apart(*scripts, time_limit=limit).communicate(timeout=300)
    assert not trouble
    assert survivors() == []
    outcome = json.loads(said)
    assert {name: outcome[name] for name in ends} == ends
    assert log is None or Path("log").read_text().splitlines() == log
    assert not outcome["timed_out"] or outcome["seconds"] >= limit
    if scripts == [SIGNS]:
        assert 0 < outcome["seconds_to_print"] < outcome["seconds"]


def test_a_launch_that_is_asked_to_end_takes_its_processes_along():
    process = launch_apart(f"setsid sleep {NAP} & sleep {NAP}")
    wait_until(lambda: len(survivors()) == 2, "both processes")
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=240)
    assert json.loads(said)["stopped"] == "SIGTERM"
    assert survivors() == []


def test_a_log_that_cannot_be_written_ends_the_launch_in_one_line():
    if not Path("/dev/full").exists():
        cannot_run("/dev/full, a file of Linux's that is always full")
    Path("log").symlink_to("/dev/full")
    process = launch_apart(f"echo text; sleep {NAP}")
    _, trouble = process.communicate(timeout=300)
    said = f"reperf: log: cannot be written: {os.strerror(28)}\n"
    assert (process.returncode, trouble) == (1, said)
    assert survivors() == []


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
    listener = launch._Listener(io.BytesIO(), launch.Outcome(), time.monotonic(), world_size=2)
    news = b"rank 0: iteration 3\nrank 1: iteration 3\n"
    listener.listen(io.BytesIO(news + ranks.encode()))
    listener.started -= 35
    assert listener.silent() == silent


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
    listener = launch._Listener(log, launch.Outcome(), started=0.0, world_size=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "LONGEST_PIECE", 1 << 16)
        listener.listen(launch.pieces(io.BytesIO(said)))
    assert log.getvalue() == said
    assert listener.trouble is None
    heard = listener.outcome.last_heard
    assert set(heard) <= {0, 1}
    assert {one.iteration for one in heard.values()} <= {None, 1}
