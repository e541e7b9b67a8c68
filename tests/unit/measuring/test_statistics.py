"""Statistics against numbers worked out by hand, by counting, or by scipy."""

import itertools
import math
import random

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


@pytest.mark.parametrize(
    ("n", "level", "rank"),
    # Of 2 ** 7 ways to lie above or below the median, two have all seven values on one side.
    [(6, 1 - 2 / 2**6, 1), (7, 1 - 2 / 2**7, 1), (8, 1 - 2 / 2**8, 1), (9, 0.9609375, 2)],
)
def test_the_interval_is_the_narrowest_exact_one(n, level, rank):
    interval = median_interval([float(value) for value in range(1, n + 1)])
    assert (interval.low, interval.high, interval.level) == (rank, n + 1 - rank, level)


def test_five_published_repeats_have_a_spread_and_no_interval():
    numbers = spread([5915.65, 5906.55, 5910.0, 5899.5, 5912.25])
    assert numbers["throughput_median"] == 5910.0
    assert (numbers["throughput_min"], numbers["throughput_max"]) == (5899.5, 5915.65)
    assert numbers["throughput_iqr"] == pytest.approx(5912.25 - 5906.55)
    assert numbers["ci_low"] is numbers["ci_high"] is numbers["ci_level"] is None
    assert repeats_for_interval() == 6


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


REPEATS = st.lists(st.floats(1, 100), min_size=4, max_size=8, unique=True)


@given(REPEATS, REPEATS)
def test_the_interval_of_a_ratio_excludes_1_just_where_the_rank_test_tells_apart(ours, theirs):
    assume(not set(ours) & set(theirs))
    [(verdict, _)] = compare([ours], theirs)
    found = ratio(ours, theirs)
    assert (verdict == "not resolvable") == (found.low <= 1 <= found.high)
    assert found.low <= found.estimate <= found.high
    back = ratio(theirs, ours)
    assert (back.low, back.high) == pytest.approx((1 / found.high, 1 / found.low))


FEW = st.lists(st.floats(50, 150), min_size=2, max_size=5)


@given(FEW, FEW)
def test_a_cell_alone_is_held_against_all_ways_to_deal_its_repeats(ours, theirs):
    logs = [math.log(value) for value in (*ours, *theirs)]
    mean = sum(logs) / len(logs)
    ways = itertools.combinations(logs, len(ours))
    seen, *others = (abs(sum(one - mean for one in way)) for way in ways)  # first, as measured
    assume(seen > 1e-6)
    as_far = 1 + sum(other >= seen * (1 - 1e-9) for other in others)
    share = pytest.approx(as_far / (1 + len(others)), abs=1e-9)
    assert step_down([(ours, theirs)]) == [share]


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
    from scipy.stats import ttest_ind  # noqa: PLC0415 - takes a second

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


BATCH = {"suite": "s", "batch_size_per_device": 4, "topology": "1n1g", "repeat": 1}
BATCH |= {"source": "", "precision": "fp32", "status": "ok"}
AMP = {"precision": "amp"}


@pytest.mark.parametrize(
    ("losses", "same", "found"),
    [
        ((7.2, 7.25, 7.2003), {}, {1: pytest.approx(7.20015)}),
        ((7.2, 7.25), {}, {0: 7.25, 1: 7.2}),
        ((7.2, None), {}, {}),
        ((7.2,), {}, {}),
        ((7.2, 7.25, 7.2, 7.25), {}, {0: 7.25, 1: 7.2, 2: 7.25, 3: 7.2}),
        # Up to the rounding of the precision.
        ((7.2, 7.2, 7.2 + 0.99e-3), {}, {}),
        ((7.2, 7.2, 7.2 + 1.01e-3), {}, {2: 7.2}),
        ((7.2, 7.2, 7.2 + 0.99e-2), AMP, {}),
        ((7.2, 7.2, 7.2 + 1.01e-2), AMP, {2: 7.2}),
        # Logs of others, bad runs and those of other batches are not compared.
        ((7.2, 8.0), {"source": "an.zip"}, {}),
        ((7.2, 8.0), {"status": "oom"}, {}),
        *(((7.2, 8.0), {key: [1, 2]}, {}) for key in [*BATCH][:4]),
    ],
)
def test_a_run_of_ours_that_starts_elsewhere_than_most_of_its_batch_is_an_outlier(
    losses, same, found
):
    runs = pd.DataFrame([BATCH] * len(losses)).assign(start_loss=losses, **same)
    assert initial_loss_outliers(runs).to_dict() == found
