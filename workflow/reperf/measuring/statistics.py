"""Statistics of a few repeats: order statistics, because seven runs carry no more.

Source of the interval: H. A. David and H. N. Nagaraja, Order Statistics, 3rd ed., section 7.1: the
k-th smallest and k-th largest of n independent values enclose the median of their distribution
with probability 1 - 2 P(B < k), B binomial with n and 1/2, whatever the distribution.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations, count, islice
from math import ceil, comb
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

CONFIDENCE = 0.95  # the least coverage at which a confidence interval is given
SIGNIFICANCE = 0.05  # the greatest p at which a two-sided test calls two cells different

WIDE = 1.25
"""The greatest speedup of single repeats over the least beyond which a speedup says nothing."""

Verdict = Literal["faster", "slower", "not resolvable"]


TOLERANCE, IN_FEWER_BITS = 1e-3, 1e-2
"""How far the losses of two systems may be apart in fp32, and in all else, from rounding alone.

In bfloat16, the losses of ResNet-50 and BERT in PyTorch and TensorFlow 2 were up to 9e-4 apart.
"""
_SAME_BATCH = ["suite", "batch_size_per_device", "topology", "repeat"]


Repeats = Sequence[float]  # the throughputs of a cell's repeats


class Interval(NamedTuple):
    """A confidence interval of a median, with its exact coverage."""

    low: float
    high: float
    level: float


class Ranked(NamedTuple):
    """A cell's place among others."""

    cell: int  # which of the cells it is
    median: float
    ratio: float  # its median divided by that of the fastest
    verdict: Literal["fastest"] | Verdict
    p: float | None
    """Of the test against the fastest, corrected for the number of rivals; None: it is that."""


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """Summarise one or more repeats of a throughput, in columns of summary.csv.

    Returns:
        throughput_median, throughput_min, throughput_max; throughput_iqr, the distance of the
        quartiles by linear interpolation (Hyndman and Fan's type 7), None where a single value has
        no spread; ci_low, ci_high, ci_level of the median, None where n is too small for them.

    Examples:
        >>> spread([1.0, 2.0, 4.0, 8.0])["throughput_median"]
        3.0
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
    """How many times faster than the baseline: unrounded medians, then half-even to 2 decimals.

    Examples:
        >>> speedup(190.0, 100.0)
        1.9
    """
    return float(round(Fraction(median) / Fraction(baseline), 2))


def speedup_range(
    values: tuple[float, float], baseline: tuple[float, float]
) -> tuple[float, float]:
    """The least and the greatest speedup that single repeats give, by their minima and maxima."""
    return speedup(values[0], baseline[1]), speedup(values[1], baseline[0])


def efficiency(median: float, baseline: float, ideal: Fraction | int) -> float:
    """The speedup over the ideal one: unrounded medians, then half-even to 4 decimals.

    Examples:
        >>> efficiency(760.0, 100.0, ideal=8)
        0.95
    """
    return float(round(Fraction(median) / Fraction(baseline) / ideal, 4))


def compare(rivals: Sequence[Repeats], cell: Repeats) -> list[tuple[Verdict, float]]:
    """Whether the repeats of some cells are faster than those of one other.

    The two-sided Mann-Whitney U test, exact: no assumption about how throughputs scatter. With
    fewer than 4 repeats on both sides, no difference can be resolved; 7 against 7 that do not
    overlap give p = 0.0006. Of many rivals some would seem different by chance alone, so p is
    corrected for their number by Holm's method.

    Returns:
        For each rival, the verdict about it, and its corrected p.

    Examples:
        >>> compare([[5.0, 6.0, 7.0, 8.0]], [1.0, 2.0, 3.0, 4.0])
        [('faster', 0.02857142857142857)]
    """
    p_values = [rank_test(rival, cell) for rival in rivals]
    return [
        (_verdict(np.median(rival) - np.median(cell), p), p)
        for rival, p in zip(rivals, holm(p_values), strict=True)
    ]


def rank_test(cell: Repeats, other: Repeats) -> float:
    """The exact two-sided p of the Mann-Whitney U test.

    A tie counts half for either side, and U is rounded towards its mean: p is never too small.

    Source: H. B. Mann and D. R. Whitney, On a Test of Whether one of Two Random Variables is
    Stochastically Larger than the Other, Annals of Mathematical Statistics 18 (1947), 50-60.

    Args:
        cell, other: one or more throughputs each.

    Examples:
        >>> rank_test([5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0])
        0.02857142857142857
    """
    ahead = float(np.sign(np.subtract.outer(np.asarray(cell), np.asarray(other))).sum())
    least = ceil((len(cell) * len(other) - abs(ahead)) / 2)
    orders = _orders(len(cell), len(other))
    return min(1.0, 2 * sum(orders[: least + 1]) / comb(len(cell) + len(other), len(cell)))


class Ratio(NamedTuple):
    """How many times as fast one cell is as another, with its confidence interval."""

    estimate: float
    low: float | None
    """None, as `high` and `level`: too few repeats for an interval with CONFIDENCE."""
    high: float | None
    level: float | None


def no_turns(speeds: Sequence[float], starts: Sequence[list[str]]) -> list[tuple[int, int]]:
    """Pairs with the fastest of some cells whose runs took no turns, the earlier cell first.

    Args:
        speeds: of the cells.
        starts: when the runs of each started, in order.

    Examples:
        >>> no_turns([9.0, 8.0, 7.0], [["02", "04"], ["01", "03"], ["05", "06"]])
        [(0, 2)]
    """
    best = max(range(len(speeds)), key=lambda cell: speeds[cell], default=0)
    pairs = []
    for other in range(len(speeds)):
        first, later = sorted((best, other), key=lambda cell: starts[cell])
        both = starts[first], starts[later]
        if other != best and min(map(len, both)) > 1 and both[0][-1] < both[1][0]:
            pairs.append((first, later))
    return pairs


def ratio(cell: Repeats, other: Repeats) -> Ratio:
    """How many times as fast a cell is as another one, by their repeats.

    The estimate is Hodges and Lehmann's on logarithms: the median of the ratios of all pairs. The
    interval lies between two of these ratios. It holds just those ratios that the exact two-sided
    rank test of `compare` does not reject, so its coverage is exact, however throughputs scatter.

    Source: M. Hollander, D. A. Wolfe and E. Chicken, Nonparametric Statistical Methods, 3rd ed.,
    sections 4.2 and 4.3; J. L. Hodges and E. L. Lehmann, Estimates of Location Based on Rank Tests,
    Annals of Mathematical Statistics 34 (1963), 598-611.

    Args:
        cell, other: one or more positive throughputs each.
    """
    ratios = np.sort(np.divide.outer(np.asarray(cell), np.asarray(other)).ravel())
    estimate = float(np.exp(np.median(np.log(ratios))))
    rank, level = rank_of_bound(len(cell), len(other))
    if not rank:
        return Ratio(estimate, None, None, None)
    return Ratio(estimate, float(ratios[rank - 1]), float(ratios[-rank]), level)


@cache
def rank_of_bound(n: int, m: int) -> tuple[int, float]:
    """Which of the sorted ratios of all pairs bounds their interval, and its exact coverage.

    Returns:
        The greatest rank from either end with at least CONFIDENCE; 0 and 0.0 where there is none.
    """
    orders = _orders(n, m)
    rank, outside, total = 0, 0, comb(n + m, n)
    while 2 * (outside + orders[rank]) <= SIGNIFICANCE * total:
        outside += orders[rank]
        rank += 1
    return rank, 1 - 2 * outside / total if rank else 0.0


@cache
def _orders(n: int, m: int) -> list[int]:
    """How many orders of all repeats put 0, 1, 2, .. pairs the one way round.

    This is the null distribution of U: the coefficients of a Gaussian binomial.
    """
    pairs = n * m
    orders = [1] + [0] * pairs
    for k in range(1, n + 1):
        for at in range(pairs, m + k - 1, -1):
            orders[at] -= orders[at - m - k]
        for at in range(k, pairs + 1):
            orders[at] += orders[at - k]
    return orders


def ranked(cells: Sequence[Repeats]) -> list[Ranked]:
    """Rank cells by the medians of their repeats, the fastest first, each compared with that.

    Examples:
        >>> [(place.cell, place.ratio, place.verdict) for place in ranked([[9.0], [12.0]])]
        [(1, 1.0, 'fastest'), (0, 0.75, 'not resolvable')]
    """
    medians = [float(np.median(cell)) for cell in cells]
    fastest, *others = sorted(range(len(cells)), key=lambda cell: -medians[cell])
    best, verdicts = medians[fastest], compare([cells[other] for other in others], cells[fastest])
    return [
        Ranked(fastest, best, 1.0, "fastest", None),
        *(
            Ranked(cell, medians[cell], medians[cell] / best, verdict, p)
            for cell, (verdict, p) in zip(others, verdicts, strict=True)
        ),
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct the p values of several tests, so that a false verdict among them is as rare as p.

    Source: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal
    of Statistics 6 (1979), 65-70.

    Examples:
        >>> holm([0.01, 0.04])
        [0.02, 0.04]
    """
    corrected, least = list(p_values), 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = least
    return corrected


MOST_ARRANGEMENTS = 50_000  # up to so many are all looked at; of more, DRAWS
DRAWS = 20_000
_BORROWED = 4  # degrees of freedom that the spread of the other cells adds to that of a cell
_ROUNDING = 1e-12  # the standard deviation of a logarithm below which repeats are equal


def step_down(
    cells: Sequence[tuple[Repeats, Repeats]], tested: Sequence[bool] | None = None
) -> list[float]:
    """Test the differences of several cells together, whatever the distribution of their repeats.

    A cell's statistic is Student's t of the logarithms, whose variance borrows from the median cell
    (V. G. Tusher, R. Tibshirani and G. Chu, Significance analysis of microarrays applied to the
    ionizing radiation response, PNAS 98 (2001), 5116-5121). Its null distribution is that of all
    arrangements of the cell's repeats into two sides, or of DRAWS of them. The largest statistic
    is held against the null distributions of all cells, the next one against those of the rest,
    and so on (P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing, 1993, section 2.6;
    J. P. Romano and M. Wolf, Exact and Approximate Stepdown Methods for Multiple Hypothesis
    Testing, JASA 100 (2005), 94-108). The tails are summed, so cells may depend on one another.
    What a cell cannot reach does not count for it: 4 against 4 repeats are enough for a large
    difference, however many cells there are.

    Args:
        cells: one or more positive throughputs on either side of each.
        tested: for each cell, whether it is tested; others only count among the rest. None: all
            are.

    Returns:
        Of each cell, the p corrected for their number: the chance of a false verdict among them.

    Examples:
        >>> step_down([([5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0])])
        [0.02857142857142857]
    """
    logs = [[np.log(side) for side in cell] for cell in cells]
    spreads = [float(np.var(np.concatenate(sides), ddof=1)) for sides in logs]
    nulls = _nulls(logs, float(np.median(spreads)) if spreads else 0.0)
    chosen = tested or [True] * len(cells)
    seen = [float(null[0]) * is_tested for null, is_tested in zip(nulls, chosen, strict=True)]
    corrected, least = [1.0] * len(cells), 0.0
    order = sorted(range(len(cells)), key=lambda cell: -seen[cell])
    for place, cell in enumerate(order):
        bound = seen[cell] * (1 - 1e-9)
        tails = (np.count_nonzero(nulls[at] >= bound) / len(nulls[at]) for at in order[place:])
        least = max(least, float(sum(tails)))
        if least >= 1:
            break
        corrected[cell] = least
    return corrected


def _nulls(
    logs: Sequence[Sequence[npt.NDArray[np.float64]]], usual: float
) -> list[npt.NDArray[np.float64]]:
    """For each cell, |t| in every arrangement of its repeats; the first is as measured."""
    nulls: dict[int, npt.NDArray[np.float64]] = {}
    sizes = [(len(first), len(second)) for first, second in logs]
    for n, m in set(sizes):
        alike = [cell for cell, size in enumerate(sizes) if size == (n, m)]
        values = np.array([np.concatenate(logs[cell]) for cell in alike]).T
        values -= values.mean(axis=0)
        sums = _arrangements(n, m).astype(np.float64) @ values
        within = np.maximum((values**2).sum(axis=0) - sums**2 * (1 / n + 1 / m), 0)
        variance = (_BORROWED * usual + within) / (_BORROWED + n + m - 2)
        error = np.sqrt(np.maximum(variance, _ROUNDING**2) / (1 / n + 1 / m))
        nulls |= zip(alike, np.ascontiguousarray((np.abs(sums) / error).T), strict=True)
    return [nulls[cell] for cell in range(len(logs))]


@lru_cache(maxsize=8)
def _arrangements(n: int, m: int) -> npt.NDArray[np.bool_]:
    """A row an arrangement: which of all repeats are on the first side, as measured in row 0."""
    everyone = n + m
    if (number := comb(everyone, n)) <= MOST_ARRANGEMENTS:
        # The later half of equal sides mirrors the earlier one.
        half = islice(combinations(range(everyone), n), number // (1 + (n == m)))
        chosen = np.array(list(half))
    else:  # the same ones on every call
        chance = np.random.default_rng(n)
        chosen = chance.random((DRAWS, everyone)).argsort(axis=1)[:, :n]
        chosen[0] = np.arange(n)
    rows = np.zeros((len(chosen), everyone), dtype=bool)
    np.put_along_axis(rows, chosen, True, axis=1)
    return rows


def repeats_to_resolve(rivals: int) -> int:
    """How many repeats of each cell can tell all of its rivals apart, if none overlap.

    Examples:
        >>> [repeats_to_resolve(rivals) for rivals in (1, 2, 6, 7)]
        [4, 5, 5, 6]
    """
    return next(n for n in count(1) if 2 * rivals / comb(2 * n, n) <= SIGNIFICANCE)


def repeats_for_interval() -> int:
    """How many repeats have an interval of their median."""
    return next(n for n in count(1) if median_interval(range(n)))


def _verdict(difference: float, p: float) -> Verdict:
    if p > SIGNIFICANCE:
        return "not resolvable"
    return "faster" if difference > 0 else "slower"


def initial_loss_outliers(measurements: pd.DataFrame) -> pd.Series:
    """Which runs start from another loss than most others that were given the same first batch.

    Where all systems are given the same batch, trainers log its loss before they train, without
    dropout. These losses must agree.

    Args:
        measurements: as read_measurements gives them. Only runs made here are compared, and of them
            those that gave a number.

    Returns:
        For each outlier, by its index, what most others' loss is: their median.
    """
    wanted = {"source": "", "status": "ok"}
    own = measurements[(measurements[list(wanted)] == wanted).all(axis="columns")]
    outliers = {}
    for _, group in own[own["start_loss"].notna()].groupby(_SAME_BATCH, sort=False):
        losses = group["start_loss"]
        for index, loss in losses.items():
            others = losses.drop(index)
            fp32 = group["precision"].iloc[0] == "fp32"
            tolerance = TOLERANCE if fp32 else IN_FEWER_BITS
            if ((others - loss).abs() > tolerance).sum() * 2 > len(others):
                outliers[index] = float(others.median())
    return pd.Series(outliers, dtype="float64")
