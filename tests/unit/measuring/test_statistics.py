"""Statistics against numbers worked out by hand or published."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.measuring.statistics import (
    compare,
    efficiency,
    holm,
    median_interval,
    repeats_for_interval,
    repeats_to_resolve,
    speedup,
    speedup_range,
    spread,
)


@pytest.mark.parametrize(
    ("n", "level", "rank"),
    [(6, 0.96875, 1), (7, 0.984375, 1), (8, 0.9921875, 1), (9, 0.9609375, 2)],
)
def test_the_interval_is_the_narrowest_exact_one(n, level, rank):
    interval = median_interval([float(value) for value in range(1, n + 1)])
    assert (interval.low, interval.high, interval.level) == (rank, n + 1 - rank, level)


@pytest.mark.parametrize("n", range(1, 6))
def test_too_few_repeats_carry_no_interval(n):
    assert median_interval([1.0] * n) is None


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


def test_the_median_of_an_even_count_is_the_mean_of_two():
    assert spread([1.0, 2.0, 4.0, 8.0])["throughput_median"] == 3.0


def test_speedup_is_rounded_once_and_half_to_even():
    assert speedup(1.125, 1.0) == 1.12
    assert speedup(1.375, 1.0) == 1.38
    # 2.6749 rounded to three digits and then to two would be 2.68.
    assert speedup(2.6749, 1.0) == 2.67
    assert speedup(11711.18, 384.85) == 30.43


def test_efficiency_is_the_share_of_the_ideal_speedup():
    assert efficiency(11711.18, 384.85, 32) == 0.951


@given(st.floats(0.01, 1e6), st.floats(0.01, 1e6))
def test_speedup_is_the_exact_quotient_rounded(median, baseline):
    exact = Fraction(median) / Fraction(baseline)
    assert (
        abs(Fraction(speedup(median, baseline)) - exact) <= Fraction(501, 100000) + exact / 10**15
    )


def test_cells_that_do_not_overlap_are_told_apart():
    slow, fast = [100.0 + k for k in range(7)], [110.0 + k for k in range(7)]
    assert compare([fast], slow) == [("faster", pytest.approx(2 / 3432))]  # 14 choose 7 orders
    assert compare([slow], fast) == [("slower", pytest.approx(2 / 3432))]


def test_three_repeats_each_cannot_resolve_anything():
    [(verdict, _)] = compare([[1.0, 2.0, 3.0]], [11.0, 12.0, 13.0])
    assert verdict == "not resolvable"


def test_cells_that_overlap_are_not_told_apart():
    [(verdict, _)] = compare([[1.0, 3.0, 5.0, 7.0, 9.0]], [2.0, 4.0, 6.0, 8.0, 10.0])
    assert verdict == "not resolvable"


def test_p_is_corrected_for_the_number_of_rivals():
    # 4 x 0.005, 3 x 0.01, 2 x 0.03, and never less than the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    fast, slow = [5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0]  # alone: p = 2 / 70
    assert [verdict for verdict, _ in compare([slow], fast)] == ["slower"]
    assert [verdict for verdict, _ in compare([slow, slow], fast)] == ["not resolvable"] * 2


@pytest.mark.parametrize(("rivals", "repeats"), [(1, 4), (2, 5), (6, 5), (7, 6)])
def test_so_many_repeats_tell_rivals_apart_and_one_less_never_does(rivals, repeats):
    assert repeats_to_resolve(rivals) == repeats
    for n, verdict in ((repeats, "slower"), (repeats - 1, "not resolvable")):
        slow, fast = [1.0 + k for k in range(n)], [101.0 + k for k in range(n)]
        assert {found for found, _ in compare([slow] * rivals, fast)} == {verdict}


def test_an_interval_takes_six_repeats():
    assert repeats_for_interval() == 6


def test_single_repeats_give_a_range_of_speedups():
    assert speedup_range((18.0, 22.0), (9.0, 11.0)) == (1.64, 2.44)
