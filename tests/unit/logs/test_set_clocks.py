"""A wall clock that was set while a run trained, beside a clock that cannot jump."""

import json
import re
from datetime import datetime, timedelta

import pytest

from tests.helpers.step_logs import planned_log, step_log
from tests.unit.logs.asking import measure_one

MARK = ":::MLLOG "


def moved(seconds: float, lines: range, clock: str = "time_ms") -> list[str]:
    """A planned log, some of whose steps have another time by one of the clocks; so has its end."""
    log, step = planned_log(iterations=160), 0
    for place, line in enumerate(log):
        is_step = '"tracked_stats"' in line
        if step in lines and (is_step or "run_stop" in line):
            event = json.loads(line.removeprefix(MARK))
            if clock == "time_ms":
                event["time_ms"] += round(1000 * seconds)
            elif is_step:
                event["value"]["seconds"] += seconds
                event["value"].pop("throughput", None)
            log[place] = MARK + json.dumps(event)
        step += is_step
    return log


@pytest.mark.parametrize("seconds", [0.3, -0.5, 3600.0])
def test_a_clock_that_was_set_once_is_not_the_one_that_measures(seconds):
    true = measure_one(planned_log(iterations=160))
    found = measure_one(moved(seconds, range(3, 9)))
    assert (found.reason, found.throughput) == ("", true.throughput)
    [warning] = found.warnings
    assert warning == (
        f"clock-set: the wall clock was set by {seconds:+.3f} s between the iterations 60 and 80; "
        "measured by the clock that cannot jump"
    )
    assert true.warnings == ()


@pytest.mark.parametrize(
    ("lines", "clock"),
    [
        (range(5, 6), "time_ms"),  # and set back
        (range(5, 6), "seconds"),
        (range(7, 8), "time_ms"),  # by the last line alone
        (range(1), "seconds"),
    ],
)
def test_a_line_whose_time_is_wrong_is_no_clock_that_was_set(lines, clock):
    found = measure_one(moved(1.0, lines, clock), ends=(20, 120) if 5 in lines else (20, 160))
    assert found.code == "two-clocks"


def standing(seconds: float, rates: bool, after: int = 80, **log: float) -> list[str]:
    """A log of one clock that gains so many seconds between two of its lines."""
    lines = step_log(**log)
    for place, line in enumerate(lines):
        step = re.search(r'"iteration": (\d+), "seconds": ([\d.]+)', line)
        if step and int(step[1]) > after:
            late = float(step[2]) + seconds
            line = line.replace(f'"seconds": {step[2]}', f'"seconds": {late:.6f}')  # noqa: PLW2901
        lines[place] = line if rates else re.sub(r', "throughput": [\d.]+', "", line)
    return lines


@pytest.mark.parametrize(
    ("seconds", "rates", "warned"),
    [
        (0.0, False, ""),
        (0.1, False, ""),  # less than the 1 % that a clock may be off
        (1.0, False, "1.31 times the usual: the clock was set, or training stood still"),
        (-1.0, False, "as long as the others, they would make the window 6.7% longer"),
        (62.0, False, "20.4 times the usual: the clock was set, or training stood still"),
        (0.5, True, ""),
        (1.5, True, "1.47 times the usual, though its line prints a speed of 100: the clock was"),
    ],
)
def test_one_interval_that_is_far_from_the_others_is_said(seconds, rates, warned):
    log = {"iterations": 600} if rates else {}
    found = measure_one(standing(seconds, rates, **log), ends=(20, 600) if rates else None)
    assert found.reason == ""
    assert ("".join(found.warnings) != "") == bool(warned)
    if warned:
        assert found.warnings[0].partition(": ")[2].startswith("the iterations 80 to 100 take ")
        assert warned in found.warnings[0]


def through_a_pipe(held: int, loss: str = "7.0") -> list[str]:
    """gluon-cv's lines of 2 s an iteration, stamped when so many have been written together."""
    log = ["Total batch size is set to 32 on 1 GPUs"]
    for at in range(1, 241):
        stamp = datetime(2026, 1, 1) + timedelta(seconds=2 * held * -(-at // held))
        log.append(
            f"{stamp},000 - train_net.py[line:175] - INFO: [Epoch 0][Batch {at}], Speed: 16.0 "
            f"samples/sec, CrossEntropy={loss}"
        )
    return log


@pytest.mark.parametrize(("held", "code"), [(1, ""), (25, "clock"), (60, "clock")])
def test_lines_that_a_buffer_held_back_give_no_number(held, code):
    found = measure_one([re.sub(r"Speed: \S+", "Speed: 0", line) for line in through_a_pipe(held)])
    assert found.code == code
    if code:
        assert "when a buffer was written" in found.reason
    else:
        assert found.throughput == pytest.approx(16)


@pytest.mark.parametrize(
    ("lost", "warned"), [(range(0), 0), (range(61, 62), 0), (range(60, 500), 1)]
)
def test_a_model_that_has_diverged_is_said(lost, warned):
    log = [
        f" iteration {at:8}/ 500 | consumed samples: {16 * at} | elapsed time per iteration (ms): "
        f"100.0 | learning rate: 1.0E-04 | global batch size: 16 | "
        f"lm loss: {'nan' if at in lost else '1.1E+01'} | loss scale: 1.0 |"
        for at in range(1, 131)
    ]
    found = measure_one(log)
    assert found.throughput == pytest.approx(160)
    assert len(found.warnings) == warned
    assert all(
        "not-finite: the loss is not a finite number in 61 of" in one for one in found.warnings
    )
