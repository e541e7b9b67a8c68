"""Statistics of a few repeats: order statistics, because seven runs carry no more.

Source of the interval: H. A. David and H. N. Nagaraja, Order Statistics, 3rd ed., section 7.1: the
k-th smallest and k-th largest of n independent values enclose the median of their distribution
with probability 1 - 2 P(B < k), B binomial with n and 1/2, whatever the distribution.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import binom, mannwhitneyu

CONFIDENCE = 0.95
"""The least coverage at which a confidence interval is given."""
SIGNIFICANCE = 0.05
"""The greatest p at which a two-sided test calls two cells different."""

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
        level = 1 - 2 * float(binom.cdf(k - 1, n, 0.5))
        if level >= CONFIDENCE:
            return Interval(ordered[k - 1], ordered[n - k], level)
    return None


def speedup(median: float, baseline: float) -> float:
    """How many times faster than the baseline: unrounded medians, then half-even to 2 decimals."""
    return float(round(Fraction(median) / Fraction(baseline), 2))


def efficiency(median: float, baseline: float, ideal: Fraction | int) -> float:
    """The speedup over the ideal one: unrounded medians, then half-even to 4 decimals.

    Args:
        ideal: the number of devices over that of the baseline.
    """
    return float(round(Fraction(median) / Fraction(baseline) / ideal, 4))


def compare(ours: Sequence[float], theirs: Sequence[float]) -> tuple[Verdict, float]:
    """Whether one cell's repeats are faster than another's.

    The two-sided Mann-Whitney U test, exact: no assumption about how throughputs scatter. With
    fewer than 4 repeats on both sides, no difference can be resolved; 7 against 7 that do not
    overlap give p = 0.0006.

    Returns:
        The verdict about `ours`, and p.
    """
    p = float(mannwhitneyu(ours, theirs, method="exact").pvalue)
    if p > SIGNIFICANCE:
        return "not resolvable", p
    faster = np.median(ours) > np.median(theirs)
    return ("faster" if faster else "slower"), p
