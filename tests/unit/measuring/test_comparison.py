"""Verdicts about two cells' repeats: what may be called slower, the same, or neither."""

import random
from io import StringIO

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.measuring.comparison import (
    MATCHED,
    MOST_REPEATS,
    ComparedCell,
    columns_apart,
    compare_tables,
    judge,
    names_of,
)
from reperf.measuring.statistics import rank_test
from reperf.tables import MEASUREMENTS, read_measurements, table_of

from tests.helpers.report_tables import ROW, STEADY

BAD = {"status": "oom", "reason": "no memory", "throughput": None}


def table(*cells: tuple[dict, list[float]]) -> pd.DataFrame:
    """A table of measurements; each cell is what it has in place of ROW's, and its throughputs."""
    rows = [
        ROW | {"repeat": repeat, "throughput": throughput, "global_batch": 16} | changes
        for changes, throughputs in cells
        for repeat, throughput in enumerate(throughputs, 1)
    ]
    return read_measurements(StringIO(table_of(rows, MEASUREMENTS)))


def scaled(values: list[float], factor: float) -> list[float]:
    return [value * factor for value in values]


def compared(before: dict, after: dict, faster: float = 1.0) -> ComparedCell:
    """A cell that is STEADY before, and so many times as fast afterwards."""
    new = table((after, scaled(STEADY, faster)))
    [cell] = compare_tables(table((before, STEADY)), new, 0.01).cells
    return cell


@pytest.mark.parametrize(
    ("factor", "threshold", "judgement"),
    [
        (0.95, 0.01, "slower"),
        (1.05, 0.01, "faster"),
        (1.0, 0.01, "same"),
        (0.996, 0.01, "same"),  # a change that nobody asks about
        (0.996, 0.003, "perhaps slower"),
        (0.99, 0.01, "perhaps slower"),
        (1.011, 0.01, "perhaps faster"),
        (0.99, 0.0, "slower"),
        (1.0005, 0.0, "cannot tell"),
    ],
)
def test_a_change_is_judged_by_its_size_and_by_the_threshold(factor, threshold, judgement):
    [verdict] = judge([(STEADY, scaled(STEADY, factor))], threshold)
    assert verdict.judgement == judgement


SIDE = st.lists(st.floats(50, 150), min_size=4, max_size=9)


@given(SIDE, SIDE, st.sampled_from([0.0, 0.01, 0.1]), st.integers(1, 20))
def test_no_verdict_says_more_than_the_whole_interval(before, after, threshold, cells):
    verdict = judge([(before, after)] * cells, threshold)[0]
    low, high = verdict.ratio.low, verdict.ratio.high
    rounding = 1e-9
    if verdict.judgement == "slower":
        assert high <= 1 - threshold + rounding
    elif verdict.judgement == "faster":
        assert low >= 1 + threshold - rounding
    elif verdict.judgement == "same":
        assert 1 - threshold <= low <= high <= 1 + threshold
    elif verdict.judgement.startswith("perhaps"):
        assert high <= 1 + rounding or low >= 1 - rounding


TIED = st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0]) | st.floats(0.5, 9), min_size=1, max_size=8)


@given(TIED, TIED)
def test_the_rank_test_is_scipys(ours, theirs):
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - takes a second

    wanted = mannwhitneyu(ours, theirs, method="exact").pvalue
    assert rank_test(ours, theirs) == pytest.approx(wanted)


def test_of_many_cells_a_large_change_takes_no_more_repeats_than_in_one():
    few = [100.0, 101.0, 102.0, 103.0], [80.0, 81.0, 82.0, 83.0]
    found = judge([few] + [(STEADY, STEADY)] * 39, 0.01)
    assert [verdict.judgement for verdict in found] == ["slower"] + ["same"] * 39
    assert found[0].beyond == pytest.approx(2 / 70 + 0.004)


def test_a_difference_that_many_cells_reach_by_chance_is_none_of_theirs():
    """Each of 20 cells gets so far in 2 of 70 arrangements."""
    found = judge([([100.0, 101.0, 102.0, 103.0], [98.0, 97.0, 96.0, 95.0])] * 20, 0.0)
    assert {verdict.judgement for verdict in found} == {"cannot tell"}
    assert found[0].changed == pytest.approx(20 * 2 / 70)


def test_so_many_repeats_as_a_verdict_names_tell_in_most_cases():
    """Of cells with its change and spread; four of five, but for the chance of this test."""
    chance = random.Random(2)
    quantiles = [98.0, 99.0, 100.0, 101.0, 102.0]
    [verdict] = judge([(quantiles, scaled(quantiles, 0.98))], 0.01)
    assert verdict.judgement == "cannot tell"
    assert 25 <= verdict.repeats <= 60
    told = []
    for _ in range(100):
        sides = ([chance.gauss(mean, 1.5) for _ in range(verdict.repeats)] for mean in (100, 98))
        told.append(judge([tuple(sides)], 0.01)[0].judgement)
    assert told.count("slower") >= 65


@pytest.mark.parametrize(
    ("before", "after", "repeats"),
    [
        ([100.0], [90.0], 4),  # nobody knows how they scatter
        ([100.0, 100.0], [90.0, 90.0], 4),
        ([100.0, 140.0, 60.0], [101.0, 139.0, 59.0], None),
    ],
)
def test_few_repeats_cannot_tell(before, after, repeats):
    [verdict] = judge([(before, after)], 0.01)
    assert (verdict.judgement, verdict.repeats) == ("cannot tell", repeats)
    assert judge([], 0.01) == []


def test_cells_are_matched_by_all_that_names_them():
    found = compare_tables(
        table(({}, STEADY), ({"batch_size_per_device": 16}, STEADY)),
        table(({"precision": "amp"}, STEADY), ({}, STEADY)),
        0.01,
    )
    assert [cell.verdict.judgement for cell in found.cells] == ["same"]
    [only_base], [only_new] = found.only_base, found.only_new
    assert only_base[MATCHED.index("batch_size_per_device")] == "16"
    assert only_new[MATCHED.index("precision")] == "amp"
    assert columns_apart([only_base], [only_new]) == [
        ("precision", {"fp32"}, {"amp"}),
        ("batch_size_per_device", {"16"}, {"8"}),
    ]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ([{}], ["small pytorch 1n2g"]),
        ([{}, {"precision": "amp"}], ["small pytorch fp32 1n2g", "small pytorch amp 1n2g"]),
        (
            [{}, {"batch_size_per_device": 16}],
            ["small pytorch batch 8 1n2g", "small pytorch batch 16 1n2g"],
        ),
    ],
)
def test_a_name_says_what_tells_cells_apart_and_nothing_more(changes, names):
    both = table(*((change, STEADY) for change in changes))
    assert names_of([cell.cell for cell in compare_tables(both, both, 0.01).cells]) == names


FIRST, AMP = {"start_loss": 6.95}, {"precision": "amp", "start_loss": 6.95}
SAME_LOG = {"log_sha256": "a" * 64}
OTHERWISE = "not comparable"


@pytest.mark.parametrize(
    ("before", "after", "judgement", "reason"),
    [
        ({}, {"unit": "tokens/s"}, OTHERWISE, "unit images/s -> tokens/s"),
        ({}, {"first": 5, "last": 65}, OTHERWISE, "window 20:120 -> 5:65"),
        ({}, {"method": "published"}, OTHERWISE, "method window -> published"),
        ({}, {"global_batch": 32}, OTHERWISE, "global batch 16 -> 32"),
        (FIRST, {"start_loss": 6.9505}, "same", ""),
        (FIRST, {"start_loss": 6.952}, OTHERWISE, "first loss 6.95 -> 6.952"),
        (AMP, AMP | {"start_loss": 6.955}, "same", ""),
        (AMP, AMP | {"start_loss": 7.1}, OTHERWISE, "first loss 6.95 -> 7.1"),
        (SAME_LOG, SAME_LOG, OTHERWISE, "the same logs on both sides: 1"),
        ({}, BAD, "no longer measured", "ok -> oom: no memory"),
        (BAD, {}, "newly measured", "oom: no memory -> ok"),
        (BAD, BAD, "never measured", "oom: no memory -> oom: no memory"),
    ],
)
def test_what_was_measured_otherwise_or_failed_is_not_compared(before, after, judgement, reason):
    cell = compared(before, after)
    assert (cell.verdict.judgement, cell.reason) == (judgement, reason)
    assert cell.comparable == (judgement == "same")


def test_more_repeats_than_the_exact_distribution_takes_are_refused():
    many = table(({}, [100.0] * (MOST_REPEATS + 1)))
    [cell] = compare_tables(many, table(({}, STEADY)), 0.01).cells
    assert cell.reason == "201 repeats; allowed: up to 200"


def test_repeats_that_failed_do_not_count():
    new = table(({}, STEADY[:6]), (BAD, [0.0]))
    [cell] = compare_tables(table(({}, STEADY)), new, 0.01).cells
    assert (cell.verdict.judgement, cell.n) == ("same", (7, 6))


def test_where_a_change_shows_is_the_median_of_other_columns():
    before = {"seconds": 4.0, "waited": 0.1, "peak_memory": 2**30, "mhz": 1410}
    cell = compared(before, {"seconds": 8.0}, 0.5)
    known = {"waited": (0.1, None), "peak_memory": (2.0**30, None), "mhz": (1410, None)}
    assert cell.numbers == known | {"step_ms": (40.0, 80.0), "load": (None, None)}
