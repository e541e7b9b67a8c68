"""Statistics of a few repeats: order statistics, because seven runs carry no more.

Source of the interval: H. A. David and H. N. Nagaraja, Order Statistics, 3rd ed., section 7.1: the
k-th smallest and k-th largest of n independent values enclose the median of their distribution
with probability 1 - 2 P(B < k), B binomial with n and 1/2, whatever the distribution.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import count
from math import comb
from typing import Literal, NamedTuple

import numpy as np

CONFIDENCE = 0.95
"""The least coverage at which a confidence interval is given."""
SIGNIFICANCE = 0.05
"""The greatest p at which a two-sided test calls two cells different."""

WIDE = 1.25
"""The greatest speedup of single repeats over the least beyond which a speedup says nothing."""

Verdict = Literal["faster", "slower", "not resolvable"]


class Interval(NamedTuple):
    """A confidence interval of a median, with its exact coverage."""

    low: float
    high: float
    level: float


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """Summarise one or more repeats of a throughput, in columns of summary.csv.

    Returns:
        throughput_median, throughput_min, throughput_max; throughput_iqr, the distance of the
        quartiles by linear interpolation (Hyndman and Fan's type 7), None where a single value has
        no spread; ci_low, ci_high, ci_level of the median, None where n is too small for them.
    """
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
    interval = median_interval(values) or (None, None, None)
    return {
        "throughput_median": float(median),
        "throughput_min": min(values),
        "throughput_max": max(values),
        "throughput_iqr": float(high - low) if len(values) > 1 else None,
        **dict(zip(("ci_low", "ci_high", "ci_level"), interval, strict=True)),
    }


def median_interval(values: Sequence[float]) -> Interval | None:
    """The narrowest interval between order statistics that covers the median with CONFIDENCE.

    For 6 to 8 values it spans them all; fewer than 6 have none.
    """
    n = len(values)
    ordered = sorted(values)
    for k in range(n // 2, 0, -1):
        level = 1 - sum(comb(n, below) for below in range(k)) / 2 ** (n - 1)
        if level >= CONFIDENCE:
            return Interval(ordered[k - 1], ordered[n - k], level)
    return None


def speedup(median: float, baseline: float) -> float:
    """How many times faster than the baseline: unrounded medians, then half-even to 2 decimals."""
    return float(round(Fraction(median) / Fraction(baseline), 2))


def speedup_range(
    values: tuple[float, float], baseline: tuple[float, float]
) -> tuple[float, float]:
    """The least and the greatest speedup that single repeats give, rounded likewise.

    Args:
        values, baseline: the minimum and the maximum of their repeats.
    """
    return speedup(values[0], baseline[1]), speedup(values[1], baseline[0])


def efficiency(median: float, baseline: float, ideal: Fraction | int) -> float:
    """The speedup over the ideal one: unrounded medians, then half-even to 4 decimals.

    Args:
        ideal: the number of devices over that of the baseline.
    """
    return float(round(Fraction(median) / Fraction(baseline) / ideal, 4))


def compare(
    rivals: Sequence[Sequence[float]], theirs: Sequence[float]
) -> list[tuple[Verdict, float]]:
    """Whether the repeats of some cells are faster than those of one other.

    The two-sided Mann-Whitney U test, exact: no assumption about how throughputs scatter. With
    fewer than 4 repeats on both sides, no difference can be resolved; 7 against 7 that do not
    overlap give p = 0.0006. Of many rivals some would seem different by chance alone, so p is
    corrected for their number by Holm's method.

    Returns:
        For each rival, the verdict about it, and its corrected p.
    """
    if not rivals:
        return []
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - slower than the rest

    found = [float(mannwhitneyu(ours, theirs, method="exact").pvalue) for ours in rivals]
    return [
        (_verdict(np.median(ours) - np.median(theirs), p), p)
        for ours, p in zip(rivals, holm(found), strict=True)
    ]


class Ratio(NamedTuple):
    """How many times as fast one cell is as another, with its confidence interval."""

    estimate: float
    low: float | None
    """None, as `high` and `level`: too few repeats for an interval with CONFIDENCE."""
    high: float | None
    level: float | None


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """How many times as fast a cell is as another one, by their repeats.

    The estimate is Hodges and Lehmann's on logarithms: the median of the ratios of all pairs. The
    interval lies between two of these ratios. It holds just those ratios that the exact two-sided
    rank test of `compare` does not reject, so its coverage is exact, however throughputs scatter.

    Source: M. Hollander, D. A. Wolfe and E. Chicken, Nonparametric Statistical Methods, 3rd ed.,
    sections 4.2 and 4.3; J. L. Hodges and E. L. Lehmann, Estimates of Location Based on Rank Tests,
    Annals of Mathematical Statistics 34 (1963), 598-611.

    Args:
        ours, theirs: one or more positive throughputs each.
    """
    ratios = np.sort(np.divide.outer(np.asarray(ours), np.asarray(theirs)).ravel())
    estimate = float(np.exp(np.median(np.log(ratios))))
    rank, level = rank_of_bound(len(ours), len(theirs))
    if not rank:
        return Ratio(estimate, None, None, None)
    return Ratio(estimate, float(ratios[rank - 1]), float(ratios[-rank]), level)


@cache
def rank_of_bound(ours: int, theirs: int) -> tuple[int, float]:
    """Which of the sorted ratios of all pairs bounds their interval, and its exact coverage.

    Returns:
        The greatest rank from either end with at least CONFIDENCE; 0 and 0.0 where there is none.
    """
    # How many orders of all repeats put so many pairs the one way round: U's null distribution, the
    # coefficients of a Gaussian binomial.
    pairs = ours * theirs
    orders = [1] + [0] * pairs
    for k in range(1, ours + 1):
        for at in range(pairs, theirs + k - 1, -1):
            orders[at] -= orders[at - theirs - k]
        for at in range(k, pairs + 1):
            orders[at] += orders[at - k]
    rank, outside, total = 0, 0, comb(ours + theirs, ours)
    while 2 * (outside + orders[rank]) <= SIGNIFICANCE * total:
        outside += orders[rank]
        rank += 1
    return rank, 1 - 2 * outside / total if rank else 0.0


def holm(found: Sequence[float]) -> list[float]:
    """p values of several tests, so that any false verdict among all is as rare as p says.

    Source: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal
    of Statistics 6 (1979), 65-70.
    """
    corrected, least = list(found), 0.0
    for rank, at in enumerate(sorted(range(len(found)), key=found.__getitem__)):
        least = max(least, min(1.0, (len(found) - rank) * found[at]))
        corrected[at] = least
    return corrected


def repeats_to_resolve(rivals: int) -> int:
    """How many repeats of each cell can tell all of its rivals apart, if none overlap."""
    return next(n for n in count(1) if 2 * rivals / comb(2 * n, n) <= SIGNIFICANCE)


def repeats_for_interval() -> int:
    """How many repeats have an interval of their median."""
    return next(n for n in count(1) if median_interval(range(n)))


def _verdict(difference: float, p: float) -> Verdict:
    if p > SIGNIFICANCE:
        return "not resolvable"
    return "faster" if difference > 0 else "slower"
