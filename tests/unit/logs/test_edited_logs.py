"""Whatever happens to a real log, a number is right or absent; tests/fuzz asks more often."""

import random

import pytest

from tests.unit.logs.asking import measure, runs_written
from tests.unit.logs.edited import EDITS, OF_COUNTS, OF_STEP_LOGS, Edit, cut_the_end
from tests.unit.logs.sources import REFUSED, RIGHT, WRONG, all_sources, unsteady
from tests.unit.logs.written import STYLES, written


def test_excerpts_of_real_logs_are_among_the_sources():
    assert "oneflow_resnet50_2n8g_b128_fp32.log" in {source.name for source in all_sources()}


def test_an_unedited_log_gives_its_number():
    for source in all_sources():
        assert source.verdict(cut_the_end, source.content, b"") == RIGHT, source.name


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_an_edited_log_gives_no_other_number(edit: Edit):
    """Unless the edit wrote that number, or lost what says what a time is of: edited.py."""
    chance = random.Random(edit.__name__)
    taken = [source for source in all_sources() if source.takes(edit)]
    verdicts = set()
    for source in chance.choices(taken, k=20):
        other = chance.choice(all_sources()).content
        content = edit(source.content, other, chance)
        verdicts.add(verdict := source.verdict(edit, content, other))
        assert verdict != WRONG, f"{source.name}:\n{content.decode(errors='replace')}"
    if edit in (*OF_STEP_LOGS, *OF_COUNTS):  # what it bends is a lie, whatever it bends
        assert verdicts == {REFUSED}
    else:
        assert RIGHT in verdicts


@pytest.mark.parametrize("name", ["megatron", "ngc-pytorch-dlrm", "torchvision"])
def test_a_line_that_broke_off_gets_no_time_of_the_one_that_follows_it(name):
    """Their lines count at the beginning and tell the time behind texts of any kind."""
    *_, source = unsteady(name)  # in its widest window
    lines = source.content.splitlines(keepends=True)
    for cut in range(len(lines[5])):
        content = b"".join([*lines[:5], lines[5][:cut], lines[7]])
        assert source.verdict(cut_the_end, content, b"") != WRONG, content.decode()


def test_a_skipped_step_is_known_where_its_line_is_lost():
    lines = [
        f"DLL 2023-07-28 15:{seconds // 60:02d}:{seconds % 60:02d}.288251 - Training Epoch: 0 "
        f"Training Iteration: {number}  average_loss : 11.1  learning_rate : 0.001  "
        f"skipped_steps : {skipped} "
        for number, skipped, seconds in ((1, 8, 0), (2, 9, 40), (5, 9, 80), (6, 10, 107))
    ]
    facts = (("global_batch", 64), ("accumulation", 1))
    [found] = measure(lines, ends=(2, 5), facts=facts)
    assert found.throughput == pytest.approx(3 * 64 / 40)
    [found] = measure(lines, ends=(2, 6), facts=facts)
    assert found.reason == "the log counts 1 skipped steps in the window, as loss scaling does"


@pytest.mark.parametrize("widest", [True, False])
def test_a_line_in_front_of_a_shorter_step_may_follow_one_that_is_lost(widest):
    """A line of MXNet's SSD is the mean of the steps since the line before it, here of 20."""
    lines = [
        f"[Training][Iteration {i}][Epoch 1, Batch {i}/300] lr: 0.06881, training time: "
        f"{seconds}.000 [ms], speed: 141.907 [imgs/sec], loss=6.9"
        for i, seconds in ((80, 225), (120, 245), (180, 209), (200, 202))
    ]
    how = {"facts": (("global_batch", 32),), "ends": None if widest else (80, 120)}
    [found] = measure(lines, widest=widest, **how)
    assert (found.throughput, found.widest) == (None, None)


@pytest.mark.parametrize(("lost", "widest"), [((9, 19), (29, 119)), ((9, 29, 49, 69), (89, 119))])
def test_a_time_of_an_unknown_number_of_steps_is_none(lost, widest):
    """A line of gluon-nlp's stands for the ten steps since the line before it."""
    lines = written("gluonnlp-bert", last=119)
    marks = [f"[step {step}]\t" for step in lost]
    left = [line for line in lines if not any(mark in line for mark in marks)]
    assert len(left) == len(lines) - len(lost)
    [found] = measure(left, widest=True)
    [true] = measure(lines, ends=widest)
    assert ((found.first, found.last), found.throughput) == (widest, true.throughput)


@pytest.mark.parametrize(
    ("name", "stray"),
    [("gluonnlp-bert", (59, 89)), ("gluonnlp-bert", (29, 59, 89)), ("paddleseg", (30, 60))],
)
@pytest.mark.parametrize("widest", [True, False])
def test_lines_farther_apart_than_the_log_prints_them_tell_no_time(name, stray, widest):
    """gluon-nlp's says its interval; PaddleSeg's does not, and one distance alone is none."""
    lines, head = written(name), len(STYLES[name].head)
    marks = [f"[step {step}]\t" if name == "gluonnlp-bert" else f"iter: {step}/" for step in stray]
    again = [next(line for line in lines if mark in line) for mark in marks]
    ends = None if widest else stray[-2:]
    strays, _ = runs_written(name, [*lines[:head], *again, *lines[head:]], widest=widest, ends=ends)
    assert (strays.throughput, strays.first_printed) == (None, stray[0])
    assert f"the time from iteration {stray[0 if widest else -2]} to" in strays.reason
