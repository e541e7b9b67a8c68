"""Statistics against numbers worked out by hand or published."""

import itertools
import math
import random
from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reperf.measuring.statistics import (
    compare,
    holm,
    initial_loss_outliers,
    median_interval,
    rank_of_bound,
    ratio,
    repeats_for_interval,
    repeats_to_resolve,
    speedup,
    spread,
    step_down,
)
from scipy.stats import ttest_ind


@pytest.mark.parametrize(
    ("n", "level", "rank"),
    [(6, 0.96875, 1), (7, 0.984375, 1), (8, 0.9921875, 1), (9, 0.9609375, 2)],
)
def test_the_interval_is_the_narrowest_exact_one(n, level, rank):
    interval = median_interval([float(value) for value in range(1, n + 1)])
    assert (interval.low, interval.high, interval.level) == (rank, n + 1 - rank, level)


def test_an_interval_takes_six_repeats():
    assert repeats_for_interval() == 6
    assert [median_interval([1.0] * n) for n in range(1, 6)] == [None] * 5


def test_coverage_is_what_counting_all_outcomes_gives():
    # Each value lies above or below the median with equal chance: count the 2**7 outcomes in
    # which the least is below and the greatest above.
    outcomes = list(itertools.product((False, True), repeat=7))
    inside = sum(any(outcome) and not all(outcome) for outcome in outcomes)
    assert median_interval([1.0] * 7).level == inside / len(outcomes)


def test_spread_of_five_published_repeats():
    numbers = spread([5915.65, 5906.55, 5910.0, 5899.5, 5912.25])
    assert numbers["throughput_median"] == 5910.0
    assert (numbers["throughput_min"], numbers["throughput_max"]) == (5899.5, 5915.65)
    assert numbers["throughput_iqr"] == pytest.approx(5912.25 - 5906.55)
    assert numbers["ci_low"] is numbers["ci_high"] is numbers["ci_level"] is None
    # The median of an even count is the mean of two.
    assert spread([1.0, 2.0, 4.0, 8.0])["throughput_median"] == 3.0


@pytest.mark.parametrize(
    ("median", "baseline", "rounded"),
    [
        (1.125, 1.0, 1.12),
        (1.375, 1.0, 1.38),
        (2.6749, 1.0, 2.67),  # rounded to three digits and then to two, it would be 2.68
        (11711.18, 384.85, 30.43),
    ],
)
def test_speedup_is_rounded_once_and_half_to_even(median, baseline, rounded):
    assert speedup(median, baseline) == rounded


@given(st.floats(0.01, 1e6), st.floats(0.01, 1e6))
def test_speedup_is_the_exact_quotient_rounded(median, baseline):
    exact = Fraction(median) / Fraction(baseline)
    off = abs(Fraction(speedup(median, baseline)) - exact)
    assert off <= Fraction(501, 100000) + exact / 10**15


SLOW, FAST = [100.0 + k for k in range(7)], [110.0 + k for k in range(7)]
P_OF_SEVEN = pytest.approx(2 / 3432)  # 14 choose 7 orders


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict", "p"),
    [
        (FAST, SLOW, "faster", P_OF_SEVEN),
        (SLOW, FAST, "slower", P_OF_SEVEN),
        ([1.0, 2.0, 3.0], [11.0, 12.0, 13.0], "not resolvable", 0.1),  # too few
        ([1.0, 3.0, 5.0, 7.0], [2.0, 4.0, 6.0, 8.0], "not resolvable", pytest.approx(48 / 70)),
    ],
)
def test_cells_are_told_apart_by_repeats_that_do_not_overlap(ours, theirs, verdict, p):
    assert compare([ours], theirs) == [(verdict, p)]


def test_p_is_corrected_for_the_number_of_rivals():
    # 4 x 0.005, 3 x 0.01, 2 x 0.03, and never less than the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize(("rivals", "repeats"), [(1, 4), (2, 5), (6, 5), (7, 6)])
def test_so_many_repeats_tell_rivals_apart_and_one_less_never_does(rivals, repeats):
    assert repeats_to_resolve(rivals) == repeats
    for n, verdict in ((repeats, "slower"), (repeats - 1, "not resolvable")):
        slow, fast = [1.0 + k for k in range(n)], [101.0 + k for k in range(n)]
        assert {found for found, _ in compare([slow] * rivals, fast)} == {verdict}


def test_a_ratio_is_the_median_of_all_pairs_and_its_interval_lies_between_two_of_them():
    found = ratio([1.0, 2.0, 4.0, 8.0], [1.0, 2.0, 4.0, 8.0])
    assert found.estimate == pytest.approx(1)
    assert (found.low, found.high, found.level) == (1 / 8, 8, pytest.approx(1 - 2 / 70))
    assert ratio([3.0], [2.0]) == (1.5, None, None, None)
    assert ratio([2.0, 2.0, 2.0], [1.0, 1.0, 1.0]) == (2, None, None, None)  # p is never below 0.1


@pytest.mark.parametrize(("ours", "theirs"), [(4, 4), (3, 5), (5, 5), (2, 8), (7, 7), (6, 3)])
def test_the_bound_of_a_ratio_covers_as_often_as_counting_all_orders_says(ours, theirs):
    """Of two equal cells every order of repeats is as likely: count those that exclude 1."""
    rank, level = rank_of_bound(ours, theirs)
    values = [2.0**k for k in range(ours + theirs)]
    outside = [0, 0]
    orders = list(itertools.combinations(values, ours))
    for first in orders:
        second = [value for value in values if value not in first]
        ratios = sorted(a / b for a in first for b in second)
        for at, wider in enumerate((rank, rank + 1)):
            outside[at] += ratios[wider - 1] > 1 or ratios[-wider] < 1
    assert level == pytest.approx(1 - outside[0] / len(orders))
    assert outside[0] / len(orders) <= 0.05 < outside[1] / len(orders)


@given(
    st.lists(st.floats(1, 100), min_size=4, max_size=8, unique=True),
    st.lists(st.floats(1, 100), min_size=4, max_size=8, unique=True),
)
def test_the_interval_of_a_ratio_excludes_1_just_where_the_rank_test_tells_apart(ours, theirs):
    assume(not set(ours) & set(theirs))
    [(verdict, _)] = compare([ours], theirs)
    found = ratio(ours, theirs)
    assert (verdict == "not resolvable") == (found.low <= 1 <= found.high)
    assert found.low <= found.estimate <= found.high
    back = ratio(theirs, ours)
    assert (back.low, back.high) == pytest.approx((1 / found.high, 1 / found.low))


@given(
    st.lists(st.floats(50, 150), min_size=2, max_size=5),
    st.lists(st.floats(50, 150), min_size=2, max_size=5),
)
def test_a_cell_alone_is_held_against_all_ways_to_deal_its_repeats(ours, theirs):
    logs = [math.log(value) for value in (*ours, *theirs)]

    def apart(side: tuple[int, ...]) -> float:
        mean = sum(logs) / len(logs)
        return abs(sum(logs[at] - mean for at in side))

    seen = apart(tuple(range(len(ours))))
    assume(seen > 1e-6)
    ways = list(itertools.combinations(range(len(logs)), len(ours)))
    as_far = sum(apart(way) >= seen * (1 - 1e-9) for way in ways)
    assert step_down([(ours, theirs)]) == [pytest.approx(as_far / len(ways), abs=1e-9)]


def test_a_difference_is_held_against_what_other_cells_reach_too():
    apart, near = ([104.0, 105.0, 106.0], [100.0, 101.0, 102.0]), ([1.0, 1.1, 1.2], [1.2, 1.3, 1.4])
    alone = step_down([apart])[0]
    both = step_down([apart, near])
    assert alone == pytest.approx(0.1)
    assert sorted(both) == sorted(step_down([near, apart]))
    assert all(p >= alone for p in both)
    # The same cell ten times: each may reach it by chance.
    assert step_down([apart] * 10) == pytest.approx([1.0] * 10)
    assert step_down([apart, near], [True, False])[1] == 1.0


def test_many_repeats_are_dealt_at_random_but_the_same_on_every_call():
    chance = random.Random(1)
    cell = [chance.gauss(100, 1) for _ in range(12)], [chance.gauss(101, 1) for _ in range(12)]
    [p] = step_down([cell])
    assert [p] == step_down([cell])
    exact = ttest_ind(*(list(map(math.log, side)) for side in cell)).pvalue
    assert p == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("equal", [[7.0] * 4, [0.3, 0.1 + 0.2, 0.3, 0.3]])
def test_equal_repeats_do_not_differ(equal):
    assert step_down([(equal, equal[::-1])])[0] > 0.7


def test_cells_that_have_not_changed_are_seldom_told_apart():
    chance = random.Random(3)

    def side() -> list[float]:
        return [100 + chance.gauss(0, 1) ** 3 for _ in range(5)]

    alarms = sum(min(step_down([(side(), side()) for _ in range(10)])) <= 0.05 for _ in range(200))
    assert alarms <= 19  # 10 are expected; more, once in 250


def starting_at(*losses: float | None, **same: object) -> pd.DataFrame:
    """One run of each of several systems on the same batch."""
    row = {"suite": "s", "batch_size_per_device": 4, "topology": "1n1g", "repeat": 1}
    row |= {"source": "", "precision": "fp32", "status": "ok"} | same
    return pd.DataFrame([row | {"start_loss": loss} for loss in losses])


@pytest.mark.parametrize(
    ("losses", "found"),
    [
        ((7.2, 7.25, 7.2003), {1: pytest.approx(7.20015)}),
        ((7.2, 7.25), {0: 7.25, 1: 7.2}),
        ((7.2, None), {}),
        ((7.2,), {}),
        ((7.2, 7.25, 7.2, 7.25), {0: 7.25, 1: 7.2, 2: 7.25, 3: 7.2}),
    ],
)
def test_who_differs_from_most_others_is_an_outlier(losses, found):
    assert initial_loss_outliers(starting_at(*losses)).to_dict() == found


@pytest.mark.parametrize(
    ("precision", "inside", "outside"), [("fp32", 0.99e-3, 1.01e-3), ("amp", 0.99e-2, 1.01e-2)]
)
def test_first_losses_agree_up_to_the_rounding_of_their_precision(precision, inside, outside):
    for off, found in ((inside, {}), (outside, {2: 7.2})):
        runs = starting_at(7.2, 7.2, 7.2 + off, precision=precision)
        assert initial_loss_outliers(runs).to_dict() == found


@pytest.mark.parametrize("same", [{"source": "an.zip"}, {"status": "oom"}])
def test_logs_of_others_and_bad_runs_are_not_compared(same):
    assert initial_loss_outliers(starting_at(7.2, 8.0, **same)).empty


@pytest.mark.parametrize("key", ["batch_size_per_device", "topology", "repeat", "suite"])
def test_other_batches_have_other_losses(key):
    both = pd.concat([starting_at(7.2), starting_at(8.0, **{key: 2})], ignore_index=True)
    assert initial_loss_outliers(both).empty
