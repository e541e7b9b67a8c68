"""The widest window: whatever is missing or printed again, what is proposed is measured."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.logs.asking import measure_one, measure_written, runs_written
from tests.unit.logs.written import STYLES, TIMED, rate, written


@settings(max_examples=100)
@given(st.sampled_from(TIMED), st.data())
def test_what_is_proposed_is_measured_and_what_all_takes(name, data):
    lines = written(name)
    head = len(STYLES[name].head)
    gone = data.draw(st.sets(st.integers(head, len(lines) - 1), max_size=8))
    lines = [line for number, line in enumerate(lines) if number not in gone]
    for _ in range(data.draw(st.integers(0, 3))):
        lines.insert(at := data.draw(st.integers(0, len(lines) - 1)), lines[at])
    for run, one in enumerate(runs_written(name, lines)):
        taken = runs_written(name, lines, widest=True)[run]
        if one.widest is None or "is not known" in one.reason or "end of the run" in one.reason:
            assert taken.status == "refused"
            continue
        named = runs_written(name, lines, ends=one.widest)[run]
        assert (named.status, named.reason) == ("ok", "")
        assert named.throughput == pytest.approx(rate(name), rel=1e-6)
        assert (taken.first, taken.last, taken.throughput) == (*one.widest, named.throughput)


@pytest.mark.parametrize("name", TIMED)
def test_it_spans_all_iterations_behind_the_warm_up(name):
    one = measure_written(name, written(name))
    assert one.widest[0] in (19, 20)
    assert one.widest[1] == one.last_printed
    assert one.interval == STYLES[name].every


@pytest.mark.parametrize("name", ["pytorch-resnet50", "paddle1-resnet50", "mxnet-bert", "maxtext"])
def test_single_iterations_make_no_window(name):
    """Where every tenth line is printed, and each tells the time of its own iteration alone."""
    head, lines = STYLES[name].head, written(name)[len(STYLES[name].head) + 1 :]
    one = measure_written(name, [*head, *lines[::10]], widest=True)
    assert (one.widest, one.interval, one.status) == (None, 10, "refused")
    assert re.match(r"the time from iteration \d+ to \d+ is not in the log", one.reason)


def test_a_log_that_begins_in_the_middle_does_not_say_what_its_first_line_covers():
    lines = [*STYLES["paddleseg"].head, *written("paddleseg")[-3:]]
    found = measure_one(lines, widest=True)
    assert (found.first, found.last) == (180, 200)
