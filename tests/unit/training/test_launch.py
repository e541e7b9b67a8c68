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

# Launching kills every descendant of the process that launches, so that it has one of its own.
PROGRAM = """
import json, os, sys
from dataclasses import asdict
from pathlib import Path
from reperf.errors import ReperfError
from reperf.training.launch import Command, launch
log, time_limit, trainers, *servers = sys.argv[1:]
trainers, *servers = (
    Command(["bash", "-c", script], os.environ | {"GREETING": "hello"})
    for script in (trainers, *servers)
)
try:
    outcome = launch(
        trainers, *servers, log=Path(log), time_limit=float(time_limit),
        world_size=3, servers_in_all=2 * len(servers),
    )
except ReperfError as error:
    sys.exit(f"reperf: {error}")
heard = {
    name: [one.model_dump() for one in getattr(outcome, name)]
    for name in ("last_heard", "servers_heard")
}
sets = {name: sorted(getattr(outcome, name)) for name in ("done", "silent")}
print(json.dumps(asdict(outcome) | heard | sets))
"""
# Named by a number that nobody else sleeps for, so that a survivor can be found: tests of this file
# run in several processes at once.
NAP = f"31415.{os.getpid()}"


def launch_apart(log: Path, *scripts: str, time_limit: float = 240) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", PROGRAM, str(log), str(time_limit), *scripts]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)


def outcome_of(log: Path, *scripts: str, time_limit: float = 240) -> dict:
    """How a launch of trainers ended, and of servers, where there is a script for them, too."""
    answer = launch_apart(log, *scripts, time_limit=time_limit)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def survivors() -> list[psutil.Process]:
    found = psutil.process_iter(["cmdline"])
    return [process for process in found if NAP in (process.info["cmdline"] or ())]


def test_all_that_is_printed_reaches_the_log(tmp_path: Path):
    outcome = outcome_of(tmp_path / "log", "echo $GREETING; echo error >&2; exit 3")
    assert (tmp_path / "log").read_text() == "hello\nerror\n"
    assert outcome["exit_code"] == 3
    assert not outcome["timed_out"]


def test_step_lines_are_kept_clean_of_the_launchers_labels(tmp_path: Path):
    outcome_of(tmp_path / "log", """echo '[default0]::::MLLOG {"key": 1}'; echo '[x] text'""")
    assert (tmp_path / "log").read_text() == ':::MLLOG {"key": 1}\n[x] text\n'


def test_a_launch_past_its_limit_ends_with_all_of_its_processes(tmp_path: Path):
    # One in a session of its own, one whose parent is gone, one that ignores being asked.
    script = (
        f"setsid sleep {NAP} & (sleep {NAP} & exit) ; "
        f"bash -c 'trap : TERM HUP; sleep {NAP}' & sleep {NAP}"
    )
    outcome = outcome_of(tmp_path / "log", script, time_limit=1)
    assert outcome["timed_out"]
    assert outcome["exit_code"] is None
    assert outcome["seconds"] >= 1
    assert survivors() == []


def test_a_launch_that_ends_leaves_no_process_either(tmp_path: Path):
    outcome = outcome_of(tmp_path / "log", f"setsid sleep {NAP} & exit 0")
    assert outcome["exit_code"] == 0
    assert survivors() == []


def test_a_launch_that_is_asked_to_end_takes_its_processes_along(tmp_path: Path):
    log = tmp_path / "log"
    script = f"setsid sleep {NAP} & sleep {NAP}"
    command = [sys.executable, "-c", PROGRAM, str(log), "60", script]
    process = subprocess.Popen(command)
    while len(survivors()) < 2:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.wait(240)
    assert survivors() == []


def test_a_launch_knows_how_each_rank_was_last_heard_of(tmp_path: Path):
    script = """
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
    outcome = outcome_of(tmp_path / "log", script)
    heard = [(one["rank"], one["iteration"]) for one in outcome["last_heard"]]
    assert heard == [(0, 60), (1, 7), (2, 40)]
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


def test_servers_start_first_and_are_asked_to_end_after_the_last_trainer(tmp_path: Path):
    serve = f"trap 'echo asked; exit' TERM; sleep 0.5; {SERVE} sleep {NAP} & wait"
    outcome = outcome_of(tmp_path / "log", "echo trains", serve)
    assert (tmp_path / "log").read_text().splitlines() == [
        "server 0: listens",
        "server 1: listens",
        "trains",
        "asked",
    ]
    assert (outcome["exit_code"], outcome["servers_ended"]) == (0, None)
    assert [one["rank"] for one in outcome["servers_heard"]] == [0, 1]
    assert survivors() == []


@pytest.mark.parametrize(
    ("trainers", "exit_code"),
    [
        (f"echo > fifo; sleep {NAP}", None),
        # Trainers may see it first, which fail then, too.
        ("exec 3> fifo; exit 1", 1),
    ],
    ids=["alone", "with-trainers"],
)
def test_a_server_that_ends_before_the_trainers_ends_the_launch(
    tmp_path: Path, monkeypatch, trainers, exit_code
):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")  # which the trainers open for as long as the server waits
    outcome = outcome_of(tmp_path / "log", trainers, f"{SERVE} cat fifo; exit 3")
    assert (outcome["exit_code"], outcome["servers_ended"]) == (exit_code, 3)
    assert not outcome["timed_out"]
    assert survivors() == []


@pytest.mark.parametrize("serve", ["echo server 0: listens;", SERVE])
def test_hanging_servers_end_at_the_time_limit(tmp_path: Path, serve):
    """Before they are heard of, or later."""
    trap = "trap '' TERM;"
    outcome = outcome_of(
        tmp_path / "log", f"sleep {NAP}", f"{trap} {serve} sleep {NAP}", time_limit=1
    )
    assert outcome["timed_out"]
    assert len(outcome["servers_heard"]) == serve.count("server")
    assert survivors() == []


def test_a_signal_is_the_exit_code(tmp_path: Path):
    assert outcome_of(tmp_path / "log", "kill -9 $$")["exit_code"] == -signal.SIGKILL


# What is no step, although it looks like one.
ODD_LINES = [
    b":::MLLOG [1]",
    b":::MLLOG " + b"[" * 100_000,
    b':::MLLOG {"value": ' + b"[" * 100_000 + b"}",
    b':::MLLOG {"value": {"iteration": "abc"}}',
    b':::MLLOG {"value": {"iteration": NaN}}',
    b':::MLLOG {"value": {"iteration": Infinity}}',
    b':::MLLOG {"value": {"iteration": true}}',
    b':::MLLOG {"value": {"iteration": -3}}',
    b':::MLLOG {"value": {"iteration": [2]}}',
    b':::MLLOG {"value": {"iteration": %s}}' % (b"9" * 4000),
    b':::MLLOG {"value": {"iteration": %s}}' % (b"9" * 5000),
    b':::MLLOG {"key": ["a", "list"], "value": 1}',
    b':::MLLOG {"key": "\\ud800"}',
    b":::MLLOG \xff\xfe\x00{",
    b":::MLLOG",
    b":::MLLOG 1",
    b":::MLLOG null",
    b"rank %s: iteration 1" % (b"1" * 5000),
    b"rank 7: iteration 1",
    b"rank -1: iteration 1",
    b"rank 1: iteration %s" % (b"1" * 5000),
    b"\0" * 1000,
    b"\r\r\x1b[31m",
    b"",
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


def test_what_stands_before_a_step_without_an_end_of_its_line_is_kept(tmp_path: Path):
    outcome_of(tmp_path / "log", """echo 'lost: :::MLLOG {"key": 1}'""")
    assert (tmp_path / "log").read_text() == 'lost: \n:::MLLOG {"key": 1}\n'


def test_odd_lines_neither_end_a_launch_nor_hold_it_up(tmp_path: Path):
    (tmp_path / "odd").write_bytes(b"\n".join([*ODD_LINES, b"x" * 3_000_000, b"y" * 300]) + b"\n")
    step = ':::MLLOG {"key": "tracked_stats", "value": {"iteration": 7}}'
    script = f"cat {tmp_path}/odd; echo '{step}'; cat {tmp_path}/odd; cat {tmp_path}/odd >&2"
    outcome = outcome_of(tmp_path / "log", script)
    assert (outcome["exit_code"], outcome["timed_out"]) == (0, False)
    heard = [(one["rank"], one["iteration"]) for one in outcome["last_heard"]]
    assert heard == [(0, 7), (1, None)]
    odd = (tmp_path / "odd").read_bytes()
    assert (tmp_path / "log").read_bytes() == odd + step.encode() + b"\n" + odd + odd


def test_a_log_that_cannot_be_written_ends_the_launch_in_one_line(tmp_path: Path):
    if not Path("/dev/full").exists():
        cannot_run("/dev/full, a file of Linux's that is always full")
    (tmp_path / "log").symlink_to("/dev/full")
    answer = launch_apart(tmp_path / "log", f"echo text; sleep {NAP}")
    assert answer.returncode == 1
    assert answer.stderr == f"reperf: {tmp_path / 'log'}: cannot be written: {os.strerror(28)}\n"
    assert survivors() == []
