"""The widest window: whatever is missing or printed again, what is proposed is measured."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reperf.logs.accumulation import newest_bar
from reperf.logs.events import evaluated_in, facts_in
from reperf.logs.formats import formats

from tests.unit.logs.asking import measure
from tests.unit.logs.written import STYLES, rate, written

NAMES = sorted(name for name in formats() if STYLES[name].has_time)


def encode(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(NAMES), st.data())
def test_what_is_proposed_is_measured_and_what_all_takes(name, data):
    lines = written(name)
    head = len(STYLES[name].head)
    gone = data.draw(st.sets(st.integers(head, len(lines) - 1), max_size=8))
    lines = [line for number, line in enumerate(lines) if number not in gone]
    for _ in range(data.draw(st.integers(0, 3))):
        lines.insert(at := data.draw(st.integers(0, len(lines) - 1)), lines[at])
    how = {"log_format": name, "facts": STYLES[name].facts}
    for run, one in enumerate(measure(encode(lines), **how)):
        taken = measure(encode(lines), widest=True, **how)[run]
        if one.widest is None or "is not known" in one.reason or "end of the run" in one.reason:
            assert taken.status == "refused"
            continue
        named = measure(encode(lines), ends=one.widest, **how)[run]
        assert (named.status, named.reason) == ("ok", "")
        assert named.throughput == pytest.approx(rate(name), rel=1e-6)
        assert (taken.first, taken.last, taken.throughput) == (*one.widest, named.throughput)


@pytest.mark.parametrize("name", NAMES)
def test_it_spans_all_iterations_behind_the_warm_up(name):
    [one] = measure(encode(written(name)), log_format=name, facts=STYLES[name].facts)
    assert one.widest[0] in (19, 20)
    assert one.widest[1] == one.last_printed
    assert one.interval == STYLES[name].every


@pytest.mark.parametrize("name", ["pytorch-resnet50", "paddle1-resnet50", "mxnet-bert", "maxtext"])
def test_single_iterations_make_no_window(name):
    """Where every tenth line is printed, and each tells the time of its own iteration alone."""
    head, lines = STYLES[name].head, written(name)[len(STYLES[name].head) + 1 :]
    how = {"log_format": name, "facts": STYLES[name].facts}
    [one] = measure(encode([*head, *lines[::10]]), **how, widest=True)
    assert (one.widest, one.interval, one.status) == (None, 10, "refused")
    assert re.match(r"the time from iteration \d+ to \d+ is not in the log", one.reason)


@given(st.binary(max_size=500), st.data())
def test_no_bytes_crash_the_readers_of_what_any_log_may_hold(noise, data):
    texts = [
        b':::MLLOG {"namespace": "", "time_ms": 12, "key": "eval_start", "value": null}',
        b':::MLLOG {"namespace": "", "time_ms": 22, "key": "eval_stop", "value": null}',
        b':::MLLOG {"key": "global_batch_size", "value": 4096}',
        b"Iteration:  14%|#4        | 166/1147 [00:30<02:54,  5.62it/s]",
        noise,
    ]
    text = b"\n".join(data.draw(st.permutations(texts)))
    cut = text[: data.draw(st.integers(0, len(text)))]
    assert evaluated_in(cut)[0].seconds >= 0
    assert newest_bar(cut) is None or newest_bar(cut).lag >= 0
    assert all(value > 0 for _, value in facts_in(cut))


def test_a_log_that_begins_in_the_middle_does_not_say_what_its_first_line_covers():
    lines = written("paddleseg", 200)
    lines = [*lines[: len(STYLES["paddleseg"].head)], *lines[-3:]]
    [found] = measure(encode(lines), widest=True, facts=STYLES["paddleseg"].facts)
    assert (found.first, found.last) == (180, 200)
