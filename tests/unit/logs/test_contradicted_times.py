"""What else a log says bounds its times: printed paces, a second start, the labels of ranks."""

import re
import sys

import pytest
from reperf.logs.formats import formats

from tests.unit.logs.asking import REAL, measure, measure_written
from tests.unit.logs.written import STYLES, uneven, written


@pytest.mark.parametrize("times", [2, 10])
def test_bars_whose_counts_are_renumbered_are_denied_by_the_pace_that_they_print(times):
    log = (REAL / "ran_lightning.log").read_bytes()
    how = {"facts": (("global_batch", 32),), "widest": True}
    [true, *_] = measure(log, **how)
    assert true.throughput
    more = re.sub(
        rb"(\d+)/(\d+) \[",
        lambda one: b"%d/%d [" % tuple(int(x) * times for x in one.groups()),
        log,
    )
    [found, *_] = measure(more, **how)
    assert found.throughput is None
    assert "by what most of its lines print" in found.reason


def test_the_mean_time_that_mmcv_prints_is_a_second_clock():
    lines = written("openmmlab")
    assert measure_written("openmmlab", lines).throughput
    faster = [re.sub(r"time: 0\.250", "time: 0.200", line) for line in lines]
    assert faster != lines
    found = measure_written("openmmlab", faster)
    assert found.reason.startswith("the log's two clocks disagree: ")


@pytest.mark.parametrize("name", ["maskrcnn-benchmark", "detectron2"])
def test_an_iteration_takes_about_as_long_as_the_lines_print(name):
    lines = written(name)
    assert measure_written(name, lines).throughput
    faster = [re.sub(r"(?<= time: )[\d.]+", "0.01", line) for line in lines]
    assert "by what most of its lines print" in measure_written(name, faster).reason


@pytest.mark.parametrize(
    "name", sorted(one.name for one in formats().values() if "{TOTAL}" in one.pattern)
)
def test_no_iteration_is_beyond_the_total_that_its_line_prints(name):
    lines, pattern = written(name), formats()[name].line
    assert measure_written(name, lines).throughput
    matches = pattern.finditer("\n".join(lines).encode())
    [total] = {match["total"].decode() for match in matches}
    fewer = [re.sub(rf"(?<=/)( *){total}\b", r"\g<1>100", line) for line in lines]
    reason = measure_written(name, fewer).reason
    assert re.fullmatch(r"iteration 1\d\d is printed, of 100 in all", reason)


@pytest.mark.parametrize(
    ("name", "picked", "why"),
    [
        ("torchtitan", r"step: \d*[02468]0 ", "the printed speeds mean 64 samples a step"),
        ("tf-cnn-benchmarks", r"27\| \d*[02468]0\t", "s by the means of all iterations so far"),
        ("pytorch-resnet50", r"Time  0\.2[0-4]", "s by the means of all iterations so far"),
        ("huggingface", r"\d*[02468]/1000", "a progress bar shows 15 of 1000 as 3 %"),
        ("lightning", r"\d*[02468]/1000", "a progress bar shows 15 of 1000 as 3 %"),
    ],
)
def test_picked_lines_numbered_anew_are_denied_by_what_they_print_beside(name, picked, why):
    style, pattern = STYLES[name], formats()[name].line
    lines = uneven(name, 20 * style.every * 20)
    how = {"facts": (*style.facts, ("accumulation", 1)), "widest": True}
    assert measure_written(name, lines, **how).throughput
    numbers = iter(range(style.first, sys.maxsize, style.every))
    left = []
    for line in lines:
        found = pattern.search(f"{line}\n".encode())
        start, stop = found.span("iteration") if found else (-1, -1)
        if start < 0:
            left.append(line)
        elif re.search(picked, line):
            left.append(f"{line[:start]}{next(numbers):{stop - start}d}{line[stop:]}")
    assert 100 < len(left) < len(lines)
    found = measure_written(name, left, **how)
    assert found.throughput is None
    assert why in found.reason


@pytest.mark.parametrize("name", ["ngc-pytorch-gnn", "ngc-pytorch-tacotron2"])
def test_iterations_take_no_less_than_they_print_but_may_wait_for_their_input(name):
    lines = written(name)
    slower, faster = (
        [
            re.sub(r"(?<=_time : )[\d.]+", lambda one, by=by: f"{float(one[0]) * by:.3f}", line)
            for line in lines
        ]
        for by in (1.1, 0.1)
    )
    assert measure_written(name, faster).throughput == measure_written(name, lines).throughput
    assert "by what most of its lines print" in measure_written(name, slower).reason


def test_an_hour_more_may_be_that_of_summer_time():
    lines = written("torchtitan")
    after = next(at for at, line in enumerate(lines) if "step: 60 " in line)
    later = [
        re.sub(r" (\d\d):(?=\d\d:\d\d,)", lambda one: f" {int(one[1]) + 1:02d}:", line)
        for line in lines[after:]
    ]
    assert later != lines[after:]
    found = measure_written("torchtitan", [*lines[:after], *later], facts=(("accumulation", 1),))
    assert found.reason.startswith("from iteration 50 to 60, an hour passes more than between")


@pytest.mark.parametrize("widest", [True, False])
def test_a_program_that_is_started_anew_has_no_window_across_its_start(widest):
    lines, head = written("torchtitan"), list(STYLES["torchtitan"].head)
    again = next(at for at, line in enumerate(lines) if "step: 60 " in line)
    lines = [*lines[:again], *head, *lines[again:]]
    how = {"facts": (("accumulation", 1),), "widest": widest}
    found = measure_written("torchtitan", lines, **how)
    if widest:
        assert (found.first, found.last) == (60, 200)
    else:
        assert found.reason == (
            "before iteration 60, the log says again what it says at its start: the program was "
            "started anew in the window"
        )


def test_a_line_without_a_label_is_no_line_of_the_rank_that_has_one():
    lines = written("ngc-pytorch-gnmt")
    quoted = [f"eval | {line}" for line in lines if "TRAIN [" in line]
    found = measure_written("ngc-pytorch-gnmt", [*lines[:50], *quoted, *lines[50:]])
    assert "carries no rank's label, and lines before it do" in found.reason


@pytest.mark.parametrize(
    ("name", "mark", "said"),
    [
        ("tf-cnn-benchmarks", "27| 60\t", "Running evaluation at global_step 70"),
        ("tf-cnn-benchmarks", "27| 60\t", "Accuracy @ 1 = 0.3692 Accuracy @ 5 = 0.6404"),
        (
            "mmengine",
            " 60/",
            "09/15 14:33:13 - mmengine - INFO - after_train_iter in EvaluateChatHook.",
        ),
    ],
)
def test_the_evaluations_that_a_program_tells_of_lie_in_no_window(name, mark, said):
    lines = written(name)
    at = next(at for at, line in enumerate(lines) if mark in line)
    found = measure_written(name, [*lines[:at], said, *lines[at:]])
    assert found.reason.startswith("evaluations lie in the window: the first between the")
