"""What people are told while a workflow runs: which run, what it gave, how long is left."""

import io
import json
import os
import re
import sys
from pathlib import Path

import pytest
from reperf.config import Suite, Window
from reperf.plans.plan_files import SuitePlan
from reperf.progress import (
    LONGEST,
    FullLog,
    Line,
    LiveDisplay,
    Pace,
    PlainLines,
    Progress,
    about,
    duration,
    of_run,
    one_line,
    reason_in,
    state_of,
)

from tests.helpers.step_logs import event, step

SUITE = Suite(
    **{"name": "one", "workload": "resnet50", "precision": "fp32", "batch_size": 4},
    **{"systems": ["pytorch"], "iterations": 4, "print_every": 1},
    window=Window(warmup=2, measured=2),
)
LOG = [
    event("submission_benchmark", "resnet50"),
    event("global_batch_size", 8),
    event("world_size", 1),
    *(step(iteration, iteration * 0.5, 8) for iteration in range(1, 5)),
    event("run_stop", None, metadata={"status": "success"}),
]
RUN = "one pytorch 1n1g, repeat 1"
FOLDER = "results/runs/one/pytorch/1n1g/{}"


class Clock:
    """A clock that tests set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def progress(clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Progress:
    """Of four runs and three other steps, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    plan = SuitePlan(suite=SUITE, cells=(), plans={}, batches={})
    written("results/suites/one/plan.json", plan.text)
    progress = Progress(clock)
    progress.planned({"train": 4, "convert": 1, "report": 1, "all": 1, "total": 7})
    return progress


def written(path: Path | str, text: str) -> Path:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    return Path(path)


def write_run(folder: str, status: str = "ok", reason: str = "", log: list[str] = LOG) -> None:
    written(f"{folder}/train.log", "\n".join(log) + "\n")
    record = {"status": status, "reason": reason, "seconds": 12.3, "run": {"suite": "one"}}
    written(f"{folder}/run.json", json.dumps(record))


def start(progress: Progress, repeat: int) -> Line | None:
    wildcards = {"suite": "one", "entry": "pytorch", "topology": "1n1g", "repeat": repeat}
    outputs = [f"{FOLDER.format(repeat)}/{name}" for name in ("train.log", "run.json")]
    of = {"message": "train", "wildcards": wildcards, "logs": [f"logs/train/{repeat}.log"]}
    return progress.started(repeat, rule="train", outputs=outputs, **of)


def end(progress: Progress, repeat: int, **run: object) -> Line:
    write_run(FOLDER.format(repeat), **run)
    return progress.finished(repeat)


def test_a_time_is_said_as_people_say_it_and_an_estimate_to_the_second():
    said = {0: "0.0 s", 3.21: "3.2 s", 9.96: "10 s", 99.4: "99 s", 99.6: "2 min", 240: "4 min"}
    said |= {5970: "1 h 40 min", 7200: "2 h", 360_000: "100 h"}
    assert {seconds: duration(seconds) for seconds in said} == said
    assert [about(seconds) for seconds in (0.2, 3.7, 12.3)] == ["1 s", "4 s", "12 s"]


def test_names_cannot_steer_a_terminal():
    assert one_line("a\nrun 9 of 9:\tdone\x1b[1A") == "a run 9 of 9: done\\x1b[1A"
    assert len(one_line("a" * 200_000)) < LONGEST + 10


@pytest.mark.parametrize(
    ("run", "good", "said"),
    [
        ({}, True, "16.00 images/s (12 s)"),
        ({"status": "oom", "reason": "no memory"}, True, "oom: no memory (12 s)"),
        ({"status": "failed", "reason": "exit\n1"}, False, "failed: exit 1 (12 s)"),
        ({"log": LOG[:5]}, False, "no throughput: too short: it ends at iteration 2, "),
        ({"log": []}, False, "no throughput: no line is one that mllog prints for an iter"),
        *((text, False, "its record cannot be read: ") for text in ("", "[]", "{}", "[" * 10**5)),
    ],
)
def test_a_run_gives_its_throughput_or_says_why_not(progress, run, good, said):
    write_run("run", **run if isinstance(run, dict) else {})
    if isinstance(run, str):
        written("run/run.json", run)
    found = of_run(Path("run/run.json"), Path("run/train.log"))
    assert (found[0], found[1][: len(said)]) == (good, said)
    assert "\n" not in found[1]


def test_the_reason_of_a_failure_is_the_line_for_people_else_the_last_one(tmp_path):
    log = tmp_path / "log"
    assert reason_in(log, None) == ""
    log.write_text("Traceback\n  File x\nValueError: no\x1b[1A\n\n")
    assert reason_in(log, None) == "ValueError: no\\x1b[1A"
    before = state_of(log)
    log.write_text("much\nreperf: a.csv: empty\n" + "x" * 10)
    assert reason_in(log, before) == "a.csv: empty"


def test_a_call_begins_with_the_plan_in_one_line():
    for counts, said in (
        ({"train": 18, "measure": 3, "all": 1, "total": 22}, "18 runs and 3 other steps to do"),
        ({"train": 1, "total": 1}, "1 run to do"),
        ({"report": 1, "all": 1, "total": 2}, "1 step to do"),
    ):
        assert Progress().planned(counts) == Line(said)


def test_each_run_that_ended_has_a_number_and_says_what_is_left(progress, clock):
    assert start(progress, 1) is None
    clock.now = 20
    good = f"run 1 of 4: {RUN}: 16.00 images/s (12 s); about 60 s left"
    assert end(progress, 1) == Line(good)
    start(progress, 2)
    clock.now = 25
    assert progress.head() == ("1 of 4 runs", "about 55 s left")
    clock.now = 40
    bad = (
        "run 2 of 4: one pytorch 1n1g, repeat 2: timeout: no end after 1 s (12 s); "
        f"its log: {FOLDER.format(2)}/train.log; about 40 s left"
    )
    assert end(progress, 2, status="timeout", reason="no end after 1 s") == Line(bad, bad=True)


def test_a_run_that_is_tried_again_counts_once(progress, clock):
    log = written("logs/train/1.log", "reperf: of yesterday\n")
    start(progress, 1)
    early = progress.failed(1, "train", [str(log)], "Slurm ended it\nNODE_FAIL")
    assert "failed: Slurm ended it NODE_FAIL (logs/train/1.log)" in early.text
    start(progress, 1)
    log.write_text("reperf: x/train.log: timeout: no end after 1 s\n")
    failed = progress.failed(1, "train", [str(log)], "Command failed")
    why = "x/train.log: timeout: no end after 1 s (logs/train/1.log)"
    assert (failed.text, progress.ended) == (f"run 1 of 4: {RUN}: failed: {why}", 1)
    again = start(progress, 1)
    assert (again.text, progress.ended) == (f"run 1 of 4: {RUN}: tried again", 0)
    clock.now = 10
    assert end(progress, 1).text.startswith(f"run 1 of 4: {RUN}: 16.00 ")
    assert progress.ended == 1


def test_larger_steps_are_told_when_they_begin_and_a_hundred_do_not_fill_the_screen(progress):
    def begin(number: int, rule: str) -> Line | None:
        said = {"rule": rule, "message": f"do {rule}", "logs": ["l.log"]}
        return progress.started(number, wildcards={}, outputs=[], **said)

    assert begin(5, "convert") == Line("do convert; its log: l.log")
    assert begin(6, "summarise") is None
    written("l.log", "tfrecord: 320 of 1000, about 4 s left\n")
    assert progress.doing(9) == [
        f"do {rule}: tfrecord: 320 of 1000, about 4 s left; 1 s"
        for rule in ("summarise", "convert")
    ]
    for repeat in range(100, 198):
        start(progress, repeat)
    lines = progress.doing(6)
    assert (len(lines), lines[-1]) == (6, "and 95 more")
    assert len(progress.doing(1)) == 1


@pytest.mark.parametrize(
    ("events", "left"),
    [
        ("", {0: None}),
        # What is left follows how often a run ends; while an environment is built, none runs.
        ("+0 -10 +10 -20", {20: 40, 500: 40}),
        # Many at once end more often.
        ("+0 +0 +0 +0 +0 +0 +0 +0 -10 -10 -20 -20", {20: 20, 25: 15, 999: 0}),
        # A run that is tried again does not speed it up.
        ("+0 x10", {10: None}),
        ("+0 x10 +10 -30", {30: 120}),
    ],
)
def test_what_is_left_of_four_runs_follows_how_often_one_ends(events, left):
    pace = Pace()
    for happened, *second in events.split():
        now = float("".join(second))
        pace.started(now) if happened == "+" else pace.ended(now, counts=happened == "-")
    assert {now: pace.left(4, now) for now in left} == left


def test_plain_lines_hold_no_escapes_and_survive_a_reader_that_is_gone():
    stream = io.TextIOWrapper(io.BytesIO(), "ascii", errors="backslashreplace")
    PlainLines(stream).say(Line("größer\x1b[2J", bad=True))
    assert stream.buffer.getvalue() == b"gr\\xf6\\xdfer\\x1b[2J\n"
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        lines = PlainLines(gone)
        lines.say(Line("one"))
        lines.say(Line("two"))
        os.dup2(os.open(os.devnull, os.O_WRONLY), writer)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [20, 80, 120])
def test_the_live_display_fits_the_terminal_and_leaves_it_as_it_was(progress, monkeypatch, columns):
    for name, value in (("COLUMNS", str(columns)), ("LINES", "10"), ("TERM", "xterm-256color")):
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    start(progress, 1)
    display = LiveDisplay(terminal, progress)
    display.say(end(progress, 1))
    display.close()
    shown = terminal.getvalue()
    assert all(part in shown for part in ("16.00 images/s", "0 of 4 runs", "  one pytorch"))
    # Nothing hides the cursor or takes another screen, so nothing has to bring them back.
    assert "\x1b[?" not in shown.replace("\x1b[?25h", "")
    drawn = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", shown).replace("\r", "\n").split("\n")
    assert [line for line in drawn if len(line) > columns and not line.startswith("run 1")] == []


def test_what_programs_print_goes_to_the_log_and_our_own_lines_do_not(tmp_path, capfd):
    path = tmp_path / "logs/all.log"
    with capfd.disabled():
        log = FullLog(path)
        try:
            os.system("echo of a program; echo its error >&2")
            log.write("of Snakemake\n")
        finally:
            log.close()
    assert path.read_text() == "of a program\nits error\nof Snakemake\n"
    print("after")
    sys.stdout.flush()
    assert capfd.readouterr().out == "after\n"
