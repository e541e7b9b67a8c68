"""Which of several places that did the same work is slower than the others by more than a margin.

Places are the nodes of a cluster, or the devices of a node. A test of "this node is like the
others" would be wrong: no two healthy nodes are alike, so it names one the surer, the more runs
there are. Here a place is named if it is slower than the others' median by more than a margin that
somebody can state: a one-sided t test against the margin with one standard deviation for the runs
of all places, corrected for their number by Holm's method. docs/survey.md says how often it is
right.

Sources: Student, The Probable Error of a Mean, Biometrika 6 (1908), 1-25; M. Abramowitz and
I. A. Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4; S. Holm, see
reperf.measuring.statistics.holm.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from math import atan, cos, exp, hypot, log1p, pi, sin, sqrt
from typing import Literal, NamedTuple, Self

import numpy as np

from reperf.errors import ReperfError
from reperf.measuring.statistics import SIGNIFICANCE, holm

LIKELY = 0.9  # how often a place is named that is slower by `Judged.sure`
MOST_RUNS = 200  # of a place: who needs more to be sure stands at the margin
MOST_DEGREES = 2000
OF_A_MEDIAN = pi / 2  # the variance of a median over that of a mean, of many normal values

Judgement = Literal["slow", "unclear", "ok"]


Rounds = Sequence[Mapping[str, float]]
"""Of each round, the throughput of each place that has one."""


class Judged(NamedTuple):
    """A place, compared with the others. Percentages are of a throughput."""

    name: str
    runs: int
    slower: float  # percent below the others' median; negative: above it
    low: float
    high: float  # the interval of `slower`; at 95 % for all places together
    p: float  # that it is slower by no more than the margin, corrected for the number of places
    judgement: Judgement  # unclear: the interval holds the margin
    more_runs: int | None  # how many would tell; 0: none are needed; None: more than MOST_RUNS


class Ruling(NamedTuple):
    """All places, the slowest first, and what the runs can tell at all."""

    margin: float  # percent
    scatter: float  # the standard deviation of runs within a place, percent
    sure: float  # percent by which a place must be slower to be named in LIKELY of surveys
    places: tuple[Judged, ...]

    @property
    def slow(self) -> tuple[Judged, ...]:
        """Those that are named."""
        return tuple(place for place in self.places if place.judgement == "slow")


def judge(rounds: Rounds, margin: float, beside: float = 0) -> Ruling:
    """Compare places by their throughputs.

    What a round's places have in common, such as the hour or the file server, is taken out with
    its median.

    Args:
        margin: percent of a throughput, below 100.
        beside: the scatter, in percent, of what the places are compared with, measured as often:
            a survey compares pairs with their nodes.

    Raises:
        ReperfError: fewer than two places, or no second run of any.
    """
    table = _Table.of(rounds)
    return _ruling(table, margin, table.scatter, table.dof, beside=beside)


def judge_each(groups: Mapping[str, Rounds], margin: float) -> dict[str, Ruling]:
    """Compare the places of each group with one another; the level is for all groups together.

    The scatter is estimated from the runs of all groups, because one group, such as the ranks of a
    node, may have too few. A group whose runs scatter more is judged by its own scatter. Groups in
    which nothing can be compared are left out.
    """
    tables = {}
    for name, rounds in groups.items():
        with suppress(ReperfError):
            tables[name] = _Table.of(rounds)
    dof = sum(table.dof for table in tables.values())
    scatter = sqrt(sum(table.dof * table.scatter**2 for table in tables.values()) / max(1, dof))
    return {
        name: _ruling(table, margin, max(scatter, table.scatter), dof, among=len(tables))
        for name, table in tables.items()
    }


class _Table(NamedTuple):
    """Places and their runs."""

    names: list[str]
    counts: np.ndarray  # runs of each place
    means: np.ndarray  # logarithm of its throughput over its rounds' median
    scatter: float  # standard deviation of these logarithms within a place
    dof: int

    @classmethod
    def of(cls, rounds: Rounds) -> Self:
        rounds = [one for one in rounds if len(one) > 1]
        names = sorted({name for one in rounds for name in one})
        logs = [{name: float(np.log(value)) for name, value in one.items()} for one in rounds]
        levels = [float(np.median(list(one.values()))) for one in logs]
        # A row for each place, a column for each round; NaN without a run.
        table = np.array([[one.get(name, np.nan) for one in logs] for name in names]) - levels
        if len(names) < 2:
            raise ReperfError("fewer than two have ended a run; allowed: two or more")
        counts = (~np.isnan(table)).sum(axis=1)
        dof = int(counts.sum()) - len(names) - len(rounds) + 1
        if dof < 1:
            raise ReperfError("one run of each says nothing of their scatter; allowed: two or more")
        means = np.nanmean(table, axis=1)
        # A round's median removes a part of the scatter; its mean costs just a degree of freedom.
        rest = table - means[:, None]
        rest -= np.nanmean(rest, axis=0)
        return cls(names, counts, means, sqrt(float(np.nansum(rest**2)) / dof), dof)


def _ruling(
    table: _Table, margin: float, scatter: float, dof: int, *, among: int = 1, beside: float = 0
) -> Ruling:
    """Judge places by runs that scatter so much, as `dof` degrees of freedom say."""
    names, counts, means = table.names, table.counts, table.means
    slower = np.array([np.median(np.delete(means, at)) - mean for at, mean in enumerate(means)])
    spread = hypot(scatter, -log1p(-beside / 100))
    errors = np.array([error_of(spread, counts[at], counts.sum()) for at in range(len(names))])
    limit = -np.log1p(-margin / 100)
    level = SIGNIFICANCE / among / len(names)
    bounds = t_bound(level / 2, dof) * errors
    with np.errstate(divide="ignore", invalid="ignore"):
        tails = [t_tail(one, dof) for one in np.nan_to_num((slower - limit) / errors)]
    p_values = [min(1.0, among * p) for p in holm(tails)]
    places = []
    for at, name in enumerate(names):
        runs, edges = int(counts[at]), (slower[at] - bounds[at], slower[at] + bounds[at])
        verdict = _judgement(p_values[at], edges[1] > limit)
        more: int | None = 0
        if verdict == "unclear":
            more = _more_runs(runs, len(names), among, abs(slower[at] - limit) / spread)
        low, high = map(_percent, edges)
        place = Judged(name, runs, _percent(slower[at]), low, high, p_values[at], verdict, more)
        places.append(place)
    named = t_bound(level, dof) + t_bound(1 - LIKELY, dof)
    return Ruling(
        margin,
        _percent(scatter),
        _percent(limit + named * float(errors.max())),
        tuple(sorted(places, key=lambda place: -place.slower)),
    )


def error_of(scatter: float, runs: int, of_all: int) -> float:
    """The standard error of the others' median less a place's mean."""
    others = of_all - runs
    return scatter * sqrt(1 / runs + (OF_A_MEDIAN if others > 2 * runs else 1) / others)


def longer(slower: float) -> float:
    """Percent by which work takes longer at a throughput that is lower by so many percent."""
    return 100 * (1 / (1 - slower / 100) - 1)


def rank_words(rank: Judged) -> str:
    """How much longer one of a node's ranks takes by itself."""
    much = longer(rank.slower)
    return f"rank {rank.name} takes {much:.1f} % longer by itself than the node's others"


def _judgement(p: float, may_be_slow: bool) -> Judgement:
    if p <= SIGNIFICANCE:
        return "slow"
    return "unclear" if may_be_slow else "ok"


def _more_runs(runs: int, places: int, among: int, distance: float) -> int | None:
    """How many more runs of each place put the margin out of a place's interval.

    `distance` is from the place to the margin, in standard deviations of a run.
    """

    def suffices(more: int) -> bool:
        bound = t_bound(SIGNIFICANCE / 2 / places / among, among * (places - 1) * (more - 1))
        return bound * error_of(1, more, places * more) <= distance

    enough = bisect_left(range(runs + 1, MOST_RUNS + 1), True, key=suffices)
    return enough + 1 if runs + enough < MOST_RUNS else None


def _percent(of_logs: float) -> float:
    """What a difference of logarithms is in percent of a throughput."""
    return 100 * (1 - exp(-of_logs))


def t_tail(t: float, dof: int) -> float:
    """The probability that Student's t with a whole number of degrees of freedom exceeds `t`.

    Its error is below 1e-12, whatever the tail.

    Examples:
        >>> round(t_tail(2.015, 5), 4)
        0.05
    """
    angle = atan(abs(t) / sqrt(dof))
    square = cos(angle) ** 2
    term, total = 1.0, 1.0
    for k in range(2 + dof % 2, dof - 1, 2):
        term *= square * (k - 1) / k
        total += term
    inside = total * sin(angle)
    if dof % 2:
        inside = 2 / pi * (angle + (inside * cos(angle) if dof > 1 else 0))
    outside = max(0.0, 1 - inside) / 2
    return outside if t > 0 else 1 - outside


@cache
def t_bound(p: float, dof: int) -> float:
    """What Student's t exceeds with a probability of less than a half, to nine digits.

    Beyond MOST_DEGREES of freedom it is that of so many, which is larger by less than 0.1 %.
    """
    dof = min(dof, MOST_DEGREES)
    low, high = 0.0, 1.0
    while t_tail(high, dof) > p:
        high *= 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, dof) > p else (low, middle)
    return high
