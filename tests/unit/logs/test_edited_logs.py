"""Whatever happens to a real log, a number is right or absent; tests/fuzz asks more often."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reperf.measuring.measure import Measurement

from tests.unit.logs.asking import measure
from tests.unit.logs.edited import OF_BYTES, OF_COUNTS, OF_LINES, OF_STEP_LOGS, OF_TWO, counts_twice
from tests.unit.logs.sources import Source, all_sources, unsteady
from tests.unit.logs.written import STYLES, written

SOURCES = all_sources()
sources = st.sampled_from(SOURCES)
moderately = settings(max_examples=60, deadline=None)


def wrong(source: Source, content: bytes, merged: bytes | None = None) -> list[Measurement]:
    """The numbers of an edited log that are not those of the unedited one.

    One whose evaluations are lost can be as wrong as they were long.
    """
    if source.loses_a_time(content, merged):
        return []
    return [one for one in source.measured(content) if not source.is_right(one, merged)]


def test_excerpts_of_real_logs_are_among_the_sources():
    assert {"oneflow_resnet50_2n8g_b128_fp32.log"} <= {source.name for source in SOURCES}
    for source in SOURCES:
        assert source.measured(source.content)
        assert not wrong(source, source.content)


@pytest.mark.parametrize("edit", OF_LINES)
@moderately
@given(source=sources, chance=st.randoms(use_true_random=True))
def test_what_writes_nothing_new_gives_no_other_number(edit, source, chance):
    content = edit(source.content, b"", chance)
    assert not wrong(source, content), content.decode(errors="replace")


@pytest.mark.parametrize("edit", OF_TWO)
@moderately
@given(source=sources, other=sources, chance=st.randoms(use_true_random=True))
def test_merged_logs_give_no_third_number(edit, source, other, chance):
    content = edit(source.content, other.content, chance)
    assert not wrong(source, content, other.content), content.decode(errors="replace")


@pytest.mark.parametrize("edit", OF_STEP_LOGS)
@moderately
@given(
    source=st.sampled_from([one for one in SOURCES if one.says_its_plan]),
    chance=st.randoms(use_true_random=True),
)
def test_a_bent_step_log_gives_no_other_number(edit, source, chance):
    content = edit(source.content, b"", chance)
    assert not wrong(source, content), content.decode(errors="replace")


@pytest.mark.parametrize("edit", OF_COUNTS)
@moderately
@given(
    source=st.sampled_from([one for one in SOURCES if counts_twice(one.content)]),
    chance=st.randoms(use_true_random=True),
)
def test_a_log_that_counts_twice_gives_no_other_number(edit, source, chance):
    content = edit(source.content, b"", chance)
    assert not wrong(source, content), content.decode(errors="replace")


@pytest.mark.parametrize("edit", OF_BYTES)
@moderately
@given(source=sources, chance=st.randoms(use_true_random=True))
def test_a_number_changes_only_with_what_a_line_says(edit, source, chance):
    content = edit(source.content, b"", chance)
    if wrong(source, content):
        assert source.says_otherwise(content), content.decode(errors="replace")


@pytest.mark.parametrize("name", ["megatron", "ngc-pytorch-dlrm", "torchvision"])
def test_a_line_that_broke_off_gets_no_time_of_the_one_that_follows_it(name):
    """Their lines count at the beginning and tell the time behind texts of any kind."""
    *_, source = unsteady(name)  # in its widest window
    lines = source.content.splitlines(keepends=True)
    for cut in range(len(lines[5])):
        content = b"".join([*lines[:5], lines[5][:cut], lines[7]])
        assert not wrong(source, content), content.decode()


def test_a_skipped_step_is_known_where_its_line_is_lost():
    lines = [
        f"DLL 2023-07-28 15:{seconds // 60:02d}:{seconds % 60:02d}.288251 - Training Epoch: 0 "
        f"Training Iteration: {number}  average_loss : 11.1  learning_rate : 0.001  "
        f"skipped_steps : {skipped} "
        for number, skipped, seconds in ((1, 8, 0), (2, 9, 40), (5, 9, 80), (6, 10, 107))
    ]
    facts = (("global_batch", 64), ("accumulation", 1))
    [found] = measure("\n".join(lines).encode() + b"\n", ends=(2, 5), facts=facts)
    assert found.throughput == pytest.approx(3 * 64 / 40)
    [found] = measure("\n".join(lines).encode() + b"\n", ends=(2, 6), facts=facts)
    assert found.reason == "the log counts 1 skipped steps in the window, as loss scaling does"


@pytest.mark.parametrize("widest", [True, False])
def test_a_line_in_front_of_a_shorter_step_may_follow_one_that_is_lost(widest):
    """A line of MXNet's SSD is the mean of the steps since the line before it, here of 20."""
    lines = [
        f"[Training][Iteration {i}][Epoch 1, Batch {i}/300] lr: 0.06881, training time: "
        f"{seconds}.000 [ms], speed: 141.907 [imgs/sec], loss=6.9\n"
        for i, seconds in ((80, 225), (120, 245), (180, 209), (200, 202))
    ]
    how = {"facts": (("global_batch", 32),), "ends": None if widest else (80, 120)}
    [found] = measure("".join(lines).encode(), widest=widest, **how)
    assert (found.throughput, found.widest) == (None, None)


@pytest.mark.parametrize(("lost", "widest"), [((9, 19), (29, 119)), ((9, 29, 49, 69), (89, 119))])
def test_a_time_of_an_unknown_number_of_steps_is_none(lost, widest):
    """A line of gluon-nlp's stands for the ten steps since the line before it."""
    lines = [f"{line}\n".encode() for line in written("gluonnlp-bert", last=119)]
    content = b"".join(lines)
    marks = [f"[step {step}]\t".encode() for step in lost]
    left = b"".join(line for line in lines if not any(mark in line for mark in marks))
    assert left.count(b"[step ") == content.count(b"[step ") - len(lost)
    [found] = measure(left, widest=True)
    [true] = measure(content, ends=widest)
    assert ((found.first, found.last), found.throughput) == (widest, true.throughput)


@pytest.mark.parametrize(
    ("name", "stray"),
    [("gluonnlp-bert", (59, 89)), ("gluonnlp-bert", (29, 59, 89)), ("paddleseg", (30, 60))],
)
@pytest.mark.parametrize("widest", [True, False])
def test_lines_farther_apart_than_the_log_prints_them_tell_no_time(name, stray, widest):
    """gluon-nlp's says its interval; PaddleSeg's does not, and one distance alone is none."""
    lines = [f"{line}\n" for line in written(name)]
    marks = [f"[step {step}]\t" if name == "gluonnlp-bert" else f"iter: {step}/" for step in stray]
    again = [next(line for line in lines if mark in line) for mark in marks]
    head = next(at for at, line in enumerate(lines) if "some other line" in line)
    content = "".join([*lines[:head], *again, *lines[head:]]).encode()
    how = {"log_format": name, "facts": STYLES[name].facts}
    strays, _ = measure(content, widest=widest, ends=None if widest else stray[-2:], **how)
    assert (strays.throughput, strays.first_printed) == (None, stray[0])
    assert f"the time from iteration {stray[0 if widest else -2]} to" in strays.reason
