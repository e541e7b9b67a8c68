"""What people are told while a workflow runs: which run, what it gave, how long is left."""

import io
import json
import os
import re
import sys
from pathlib import Path

import pytest
from reperf.config import Suite, Window
from reperf.measuring.measure import Method, measure_log
from reperf.progress.outcome import of_run, reason_in, state_of
from reperf.progress.output import FullLog, LiveDisplay, PlainLines
from reperf.progress.pace import Pace
from reperf.progress.phrases import LONGEST, about, duration, one_line
from reperf.progress.state import Line, Progress

WINDOW = Window(warmup=2, measured=2)
SUITES = {
    "one": Suite(
        name="one",
        workload="resnet50",
        precision="fp32",
        batch_size=4,
        systems=["pytorch"],
        iterations=4,
        print_every=1,
        window=WINDOW,
    )
}
STEP = ':::MLLOG {"key": "tracked_stats", "value": {"iteration": %d, "seconds": %f, "samples": %d}}'
LOG = [
    ':::MLLOG {"key": "submission_benchmark", "value": "resnet50"}',
    ':::MLLOG {"key": "global_batch_size", "value": 8}',
    ':::MLLOG {"key": "world_size", "value": 1}',
    *(STEP % (iteration, iteration * 0.5, iteration * 8) for iteration in range(1, 5)),
    ':::MLLOG {"key": "run_stop", "value": null, "metadata": {"status": "success"}}',
]


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def progress(clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Progress:
    monkeypatch.chdir(tmp_path)
    progress = Progress(clock)
    progress.suites = SUITES
    progress.planned({"train": 4, "convert": 1, "report": 1, "all": 1, "total": 7})
    return progress


def write_run(folder: Path, status: str = "ok", reason: str = "", log: list[str] = LOG) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.log").write_text("\n".join(log) + "\n")
    record = {"status": status, "reason": reason, "seconds": 12.3, "run": {"suite": "one"}}
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def start(progress: Progress, repeat: int, topology: str = "1n1g") -> Line | None:
    folder = f"results/runs/one/pytorch/{topology}/{repeat}"
    return progress.started(
        repeat,
        rule="train",
        message="train",
        wildcards={"suite": "one", "entry": "pytorch", "topology": topology, "repeat": repeat},
        logs=[f"logs/train/{repeat}.log"],
        outputs=[f"{folder}/train.log", f"{folder}/run.json"],
    )


def end(progress: Progress, repeat: int, topology: str = "1n1g", **run: object) -> Line:
    write_run(Path(f"results/runs/one/pytorch/{topology}/{repeat}"), **run)
    return progress.finished(repeat)


def write_log(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0.0 s"),
        (3.21, "3.2 s"),
        (9.96, "10 s"),
        (99.4, "99 s"),
        (99.6, "2 min"),
        (240, "4 min"),
        (5970, "1 h 40 min"),
        (7200, "2 h"),
        (360_000, "100 h"),
    ],
)
def test_a_time_is_said_as_people_say_it(seconds: float, said: str):
    assert duration(seconds) == said


def test_an_estimate_is_not_more_exact_than_a_second():
    assert [about(seconds) for seconds in (0.2, 3.7, 12.3)] == ["1 s", "4 s", "12 s"]


def test_names_cannot_steer_a_terminal():
    assert one_line("a\nrun 9 of 9:\tdone\x1b[1A") == "a run 9 of 9: done\\x1b[1A"
    assert len(one_line("a" * 200_000)) < LONGEST + 10


def test_a_run_says_the_throughput_that_the_report_will_show(tmp_path: Path):
    run = write_run(tmp_path / "run")
    with (run / "train.log").open("rb") as stream:
        ((measured, *_),) = measure_log("log", stream, Method(window=WINDOW))
    assert measured.throughput == 16
    good, said = of_run(run / "run.json", run / "train.log", SUITES)
    assert (good, said) == (True, "16.00 images/s (12 s)")


@pytest.mark.parametrize(
    ("run", "good", "said"),
    [
        ({"status": "oom", "reason": "no memory"}, True, "oom: no memory (12 s)"),
        ({"status": "failed", "reason": "exit\n1"}, False, "failed: exit 1 (12 s)"),
        ({"log": LOG[:5]}, False, "no throughput: too short: it ends at iteration 2, "),
        ({"log": []}, False, "no throughput: no line is one that mllog prints for an iteration"),
    ],
)
def test_a_run_without_a_throughput_says_why(tmp_path: Path, run: dict, good: bool, said: str):
    folder = write_run(tmp_path / "run", **run)
    found = of_run(folder / "run.json", folder / "train.log", SUITES)
    assert found[0] == good
    assert found[1].startswith(said)


@pytest.mark.parametrize("record", ["", "[]", "{}", "[" * 100_000, '{"status": 1'])
def test_a_record_that_is_none_is_said_and_ends_nothing(tmp_path: Path, record: str):
    path = tmp_path / "run.json"
    path.write_text(record)
    good, said = of_run(path, tmp_path / "train.log", SUITES)
    assert not good
    assert said.startswith("its record cannot be read: ")
    assert "\n" not in said


def test_a_run_that_ended_is_numbered_and_followed_by_what_is_left(
    progress: Progress, clock: Clock
):
    assert start(progress, 1) is None
    clock.now = 20
    assert end(progress, 1) == Line(
        "run 1 of 4: one pytorch 1n1g, repeat 1: 16.00 images/s (12 s); about 60 s left"
    )
    start(progress, 2)
    clock.now = 25
    assert progress.head() == ("1 of 4 runs", "about 55 s left")
    clock.now = 40
    failed = end(progress, 2, status="timeout", reason="no end after 1 s")
    assert failed.bad
    assert failed.text == (
        "run 2 of 4: one pytorch 1n1g, repeat 2: timeout: no end after 1 s (12 s); "
        "its log: results/runs/one/pytorch/1n1g/2/train.log; about 40 s left"
    )


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"train": 18, "measure": 3, "all": 1, "total": 22}, "18 runs and 3 other steps to do"),
        ({"train": 1, "total": 1}, "1 run to do"),
        ({"report": 1, "all": 1, "total": 2}, "1 step to do"),
    ],
)
def test_the_plan_is_one_line(counts: dict[str, int], said: str):
    assert Progress().planned(counts) == Line(said)


def test_a_run_that_is_tried_again_counts_once(progress: Progress, clock: Clock):
    start(progress, 1)
    write_log("logs/train/1.log", "reperf: x/train.log: timeout: no end after 1 s\n")
    failed = progress.failed(1, "train", ["logs/train/1.log"], "Command failed")
    assert failed.text == (
        "run 1 of 4: one pytorch 1n1g, repeat 1: failed: x/train.log: timeout: no end after 1 s "
        "(logs/train/1.log)"
    )
    assert progress.ended == 1
    again = start(progress, 1)
    assert again.text == "run 1 of 4: one pytorch 1n1g, repeat 1: tried again"
    assert progress.ended == 0
    clock.now = 10
    assert end(progress, 1).text.startswith("run 1 of 4: one pytorch 1n1g, repeat 1: 16.00 ")
    assert progress.ended == 1


def test_a_reason_of_an_earlier_try_is_not_taken_for_this_one(progress: Progress):
    log = write_log("logs/train/1.log", "reperf: of yesterday\n")
    start(progress, 1)
    failed = progress.failed(1, "train", [str(log)], "Slurm ended it\nNODE_FAIL")
    assert "failed: Slurm ended it NODE_FAIL (logs/train/1.log)" in failed.text


def test_a_reason_is_the_line_for_people_else_the_last_one(tmp_path: Path):
    log = tmp_path / "log"
    assert reason_in(log, None) == ""
    log.write_text("Traceback\n  File x\nValueError: no\x1b[1A\n\n")
    assert reason_in(log, None) == "ValueError: no\\x1b[1A"
    before = state_of(log)
    log.write_text("much\nreperf: a.csv: empty\n" + "x" * 10)
    assert reason_in(log, before) == "a.csv: empty"


def test_larger_steps_are_told_when_they_begin(progress: Progress):
    def begin(number: int, rule: str) -> Line | None:
        return progress.started(
            number, rule=rule, message=f"do {rule}", wildcards={}, logs=["l.log"], outputs=[]
        )

    assert begin(5, "convert") == Line("do convert; its log: l.log")
    assert begin(6, "summarise") is None
    write_log("l.log", "tfrecord: 320 of 1000, about 4 s left\n")
    assert progress.doing(9) == [
        "do summarise: tfrecord: 320 of 1000, about 4 s left; 1 s",
        "do convert: tfrecord: 320 of 1000, about 4 s left; 1 s",
    ]


def test_a_hundred_jobs_at_once_do_not_fill_the_screen(progress: Progress):
    for repeat in range(100):
        start(progress, repeat)
    lines = progress.doing(6)
    assert len(lines) == 6
    assert lines[-1] == "and 95 more"
    assert len(progress.doing(1)) == 1


def test_what_is_left_follows_how_often_a_run_ends():
    one_by_one, at_once = Pace(), Pace()
    assert one_by_one.left(4, 0) is None
    for second in (0, 10):
        one_by_one.started(second)
        one_by_one.ended(second + 10)
    assert one_by_one.left(4, 20) == 40
    # An environment is built: that is no run.
    assert one_by_one.left(4, 500) == 40
    for _ in range(8):
        at_once.started(0)
    for second in (10, 10, 20, 20):
        at_once.ended(second)
    assert at_once.left(4, 20) == 20
    assert at_once.left(4, 25) == 15
    assert at_once.left(4, 999) == 0


def test_a_run_that_is_tried_again_does_not_speed_up_the_pace():
    pace = Pace()
    pace.started(0)
    pace.ended(10, counts=False)
    assert pace.left(2, 10) is None
    pace.started(10)
    pace.ended(30)
    assert pace.left(2, 30) == 60


def test_plain_lines_hold_no_escapes_and_survive_a_reader_that_is_gone():
    stream = io.TextIOWrapper(io.BytesIO(), "ascii", errors="backslashreplace")
    lines = PlainLines(stream)
    lines.say(Line("größer\x1b[2J", bad=True))
    assert stream.buffer.getvalue() == b"gr\\xf6\\xdfer\\x1b[2J\n"
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as gone:  # noqa: PTH123
        lines = PlainLines(gone)
        lines.say(Line("one"))
        lines.say(Line("two"))
        os.dup2(os.open(os.devnull, os.O_WRONLY), writer)


@pytest.mark.parametrize("columns", [20, 80, 120])
def test_the_live_display_fits_the_terminal_and_leaves_it_as_it_was(
    progress: Progress, monkeypatch: pytest.MonkeyPatch, columns: int
):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    start(progress, 1)
    display = LiveDisplay(terminal, progress)
    display.say(end(progress, 1))
    display.close()
    shown = terminal.getvalue()
    assert "16.00 images/s" in shown
    assert "\x1b[?25l" not in shown  # nothing hides the cursor, so nothing has to bring it back
    assert "\x1b[?1049h" not in shown
    drawn = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", shown).replace("\r", "\n").split("\n")
    assert "0 of 4 runs" in shown
    assert "  one pytorch" in shown
    assert [line for line in drawn if len(line) > columns and not line.startswith("run 1")] == []


def test_what_programs_print_goes_to_the_log_and_our_own_lines_do_not(tmp_path: Path, capfd):
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
