"""Whether cells are slower or faster in one report than in another: matched, tested, judged.

A change has to be larger than a threshold of practice. Both tests are those of
`reperf.measuring.statistics.step_down` over all cells, and of the exact `rank_test` of the cell
alone, whose p must be small as well: so a verdict never says more than the interval.

- slower or faster: the change is larger than the threshold. The base's throughputs are multiplied
  by 1 - threshold or 1 + threshold before the test (a minimum-effect test: K. R. Murphy and
  B. Myors, Testing the Hypothesis That Treatments Have Negligible Effects, Journal of Applied
  Psychology 84 (1999), 234-248). The whole interval then lies beyond the threshold.
- perhaps slower or faster: there is a change, which may be smaller than the threshold.

A cell is the same if its whole interval lies within the threshold, which is a test of equivalence
(D. J. Schuirmann, A Comparison of the Two One-Sided Tests Procedure and the Power Approach, Journal
of Pharmacokinetics and Biopharmaceutics 15 (1987), 657-680), at a level of 2.5 % for each cell.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, log, log1p, pi
from operator import itemgetter
from statistics import NormalDist, variance
from typing import Literal

import pandas as pd

from reperf.measuring import SUMMED
from reperf.measuring.statistics import (
    IN_FEWER_BITS,
    SIGNIFICANCE,
    TOLERANCE,
    Ratio,
    Repeats,
    rank_test,
    ratio,
    repeats_to_resolve,
    step_down,
)
from reperf.tables import CELL, SETTING

Judgement = Literal[
    "slower",
    "no longer measured",
    "perhaps slower",
    "faster",
    "perhaps faster",
    "newly measured",
    "same",
    "cannot tell",
    "not comparable",
    "never measured",
]

MATCHED = (*CELL, *SETTING)  # the columns that cells have in common to be compared
_NAMED = ("suite", "system", "variant", "topology")
_SEEN_IN = ("num_nodes", "devices_per_node")  # columns that `topology` says, too
MOST_REPEATS = 200  # of a cell on either side; the exact distribution of more takes too long
_ALARM = 0.04
"""The greatest p, corrected for the number of cells, at which a change is reported.

Equal builds have a false alarm in at most this share of comparisons. It is below 5 % so that
counted shares of false alarms are below 5 %, too.
"""
_SLACK = 0.004
"""The part of _ALARM that is spent on finding cells that are surely within the threshold."""
_POWER = 0.8
"""The chance with which the number of repeats that a verdict names would give another one."""
_TESTED = ("slower", "perhaps slower", "faster", "perhaps faster", "same", "cannot tell")

Cell = tuple[str, ...]  # the values of MATCHED; an absent value is ""
Sides = tuple[Repeats, Repeats]
"""The positive throughputs of a cell before and after; or after and before, in a test."""
Pair = tuple[float | None, float | None]  # a number before and after


@dataclass(frozen=True)
class Verdict:
    """What is known about the change of a cell's throughput."""

    judgement: Judgement  # in a word or two
    # after / before, with an exact interval of the cell alone; None: not tested
    ratio: Ratio | None = None
    # p of the test that there is no change, corrected for the number of cells
    changed: float | None = None
    beyond: float | None = None  # likewise, that the change is not larger than the threshold
    # how many on either side would probably tell, if a cell's change and spread are as they seem;
    # None: the test has decided, or no number up to MOST_REPEATS would
    repeats: int | None = None


@dataclass(frozen=True)
class ComparedCell:
    """A cell that is in both reports."""

    cell: Cell  # its values of MATCHED
    verdict: Verdict  # about its throughput
    reason: str  # why it is not comparable, or has no number on one side
    n: tuple[int, int]  # measured repeats before and after
    medians: Pair  # of their throughputs
    unit: str  # of the throughputs
    numbers: dict[str, Pair]  # medians of what else shows a change, by the names of SHOWN

    @property
    def comparable(self) -> bool:
        """Whether its throughputs were compared."""
        return self.verdict.judgement in _TESTED


@dataclass(frozen=True)
class Comparison:
    """The cells of two reports: those in both, and those in one of them only."""

    cells: tuple[ComparedCell, ...]
    only_base: tuple[Cell, ...]
    only_new: tuple[Cell, ...]


def compare_tables(base: pd.DataFrame, new: pd.DataFrame, threshold: float) -> Comparison:
    """Compare the cells of two tables of measurements, whose throughputs are positive.

    Args:
        threshold: the smallest change that matters, as a share: 0.01 is 1 %.
    """
    before, after = cells_of(base), cells_of(new)
    both = [cell for cell in before if cell in after]
    sides = {cell: (measured(before[cell]), measured(after[cell])) for cell in both}
    untested = {cell: _untested(before[cell], after[cell]) for cell in sides}
    tested = [cell for cell, why in untested.items() if why is None]
    repeats = [
        (list(old["throughput"]), list(new["throughput"]))
        for old, new in map(sides.__getitem__, tested)
    ]
    verdicts = dict(zip(tested, judge(repeats, threshold), strict=True))
    return Comparison(
        cells=tuple(
            _compared(cell, *sides[cell], *(untested[cell] or (verdicts[cell], "")))
            for cell in sides
        ),
        only_base=tuple(cell for cell in before if cell not in after),
        only_new=tuple(cell for cell in after if cell not in before),
    )


def judge(cells: Sequence[Sides], threshold: float) -> list[Verdict]:
    """Judge the changes of several cells together.

    Args:
        cells: of each, its positive throughputs before and after.
        threshold: the smallest change that matters, as a share.

    Examples:
        >>> before, after = [100.0, 101, 102, 103], [90.0, 91, 92, 93]
        >>> [verdict.judgement for verdict in judge([(before, after), (before, before)], 0.01)]
        ['slower', 'cannot tell']
    """
    ratios = [ratio(new, base) for base, new in cells]
    bounds = [1 - threshold if change.estimate < 1 else 1 + threshold for change in ratios]
    outside = [not 1 - threshold <= change.estimate <= 1 + threshold for change in ratios]
    changed = _with_rank_tests([(new, base) for base, new in cells])
    against = [
        ([throughput / bound for throughput in new], base)
        for (base, new), bound in zip(cells, bounds, strict=True)
    ]
    beyond = _beyond(against, outside) if threshold else changed
    verdicts = []
    for (base, new), change, any_p, beyond_p in zip(cells, ratios, changed, beyond, strict=True):
        verdict = Verdict(_judgement(change, any_p, beyond_p, threshold), change, any_p, beyond_p)
        if verdict.judgement == "cannot tell":
            needed = _repeats_to_tell(base, new, change.estimate, threshold, len(cells))
            verdict = replace(verdict, repeats=needed)
        verdicts.append(verdict)
    return verdicts


def _judgement(change: Ratio, changed: float, beyond: float, threshold: float) -> Judgement:
    slower = change.estimate < 1
    if beyond <= _ALARM:
        return "slower" if slower else "faster"
    low, high = change.low, change.high
    if low is not None and high is not None and 1 - threshold <= low <= high <= 1 + threshold:
        return "same"
    if changed <= _ALARM:
        return "perhaps slower" if slower else "perhaps faster"
    return "cannot tell"


def _with_rank_tests(cells: Sequence[Sides], tested: Sequence[bool] | None = None) -> list[float]:
    """The p of each cell among all, or that of its rank test alone if it is larger."""
    together = zip(step_down(cells, tested), cells, strict=True)
    return [max(p, rank_test(new, base)) for p, (new, base) in together]


def _beyond(cells: Sequence[Sides], outside: Sequence[bool]) -> list[float]:
    """The p of each cell's test that its change is not larger than the threshold.

    Cells that are sure to be within the threshold cannot raise a false alarm, and are left out
    first; that they are sure is another test, whose level is added to each p (J. P. Romano, A. M.
    Shaikh and M. Wolf, A Practical Two-Step Method for Testing Moment Inequalities, Econometrica 82
    (2014), 1979-2002).

    Args:
        cells: throughputs after the change, divided by the bound that is nearer; and before it.
        outside: for each cell, whether its observed change is larger than the threshold.
    """
    within = step_down(cells, [not is_outside for is_outside in outside])
    left = [at for at, p in enumerate(within) if p > _SLACK]
    p_left = _with_rank_tests([cells[at] for at in left], [outside[at] for at in left])
    corrected = [1.0] * len(cells)
    for at, p in zip(left, p_left, strict=True):
        corrected[at] = min(1.0, p + _SLACK) if outside[at] else 1.0
    return corrected


def _repeats_to_tell(
    base: Repeats, new: Repeats, estimate: float, threshold: float, cells: int
) -> int | None:
    """How many repeats on either side would tell; None: more than MOST_REPEATS.

    Of normal logarithms, with the test's efficiency of 3 / pi beside Student's t test: E. L.
    Lehmann, Nonparametrics: Statistical Methods Based on Ranks, section 2.4.
    """
    freedom = len(base) + len(new) - 2
    room = abs(abs(log(estimate)) - (-log1p(-threshold) if estimate < 1 else log1p(threshold)))
    is_within = 1 - threshold < estimate < 1 + threshold
    level = SIGNIFICANCE if is_within else _ALARM / cells
    fewest = max(repeats_to_resolve(1), min(len(base), len(new)) + 1)
    squares = sum(
        variance(map(log, values)) * (len(values) - 1) for values in (base, new) if len(values) > 1
    )
    if not freedom or not squares:  # nobody knows how they scatter
        return fewest
    if not room:
        return None
    normal = NormalDist()
    quantiles = normal.inv_cdf(1 - level / 2) + normal.inv_cdf(_POWER)
    needed = 2 * squares / freedom * (quantiles / room) ** 2 * pi / 3
    return max(fewest, ceil(needed)) if needed <= MOST_REPEATS else None


def names_of(cells: Sequence[Cell]) -> list[str]:
    """The names of cells: suite, system, variant and topology, and what else tells them apart."""
    chosen = [MATCHED.index(column) for column in _NAMED]

    def named() -> list[str]:
        return [" ".join(_part(cell, at) for at in sorted(chosen) if cell[at]) for cell in cells]

    for at, column in enumerate(MATCHED):
        if column not in (*_NAMED, *_SEEN_IN):
            apart = len(set(named()))
            chosen.append(at)
            if len(set(named())) == apart:
                chosen.pop()
    return named()


def _part(cell: Cell, at: int) -> str:
    return f"batch {cell[at]}" if MATCHED[at] == "batch_size_per_device" else cell[at]


def columns_apart(
    base: Iterable[Cell], new: Iterable[Cell]
) -> list[tuple[str, set[str], set[str]]]:
    """The columns of MATCHED in which two reports have no value in common, with their values."""
    of_base, of_new = (list(zip(*cells, strict=True)) for cells in (base, new))
    return [
        (column, set(before), set(after))
        for column, before, after in zip(MATCHED, of_base, of_new, strict=True)
        if column not in _SEEN_IN and not set(before) & set(after)
    ]


def measured(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of a table that gave a number."""
    return runs[runs["status"] == "ok"]


def rows_of(table: pd.DataFrame, cells: Iterable[Cell]) -> pd.DataFrame:
    """The rows of a table that are of some cells."""
    wanted = set(cells)
    return table.iloc[[at for at, cell in enumerate(_cell_of_rows(table)) if cell in wanted]]


def _cell_of_rows(table: pd.DataFrame) -> list[Cell]:
    rows = table[list(MATCHED)].itertuples(index=False)
    return [tuple("" if pd.isna(value) else str(value) for value in row) for row in rows]


def cells_of(table: pd.DataFrame) -> dict[Cell, pd.DataFrame]:
    """The rows of each cell of a table."""
    places: dict[Cell, list[int]] = {}
    for at, cell in enumerate(_cell_of_rows(table)):
        places.setdefault(cell, []).append(at)
    return {cell: table.iloc[some] for cell, some in places.items()}


def _untested(base: pd.DataFrame, new: pd.DataFrame) -> tuple[Verdict, str] | None:
    """The verdict about a cell whose throughputs are not compared, and why; None: they are."""
    before, after = measured(base), measured(new)
    if len(before) and len(after):
        why = why_not_comparable(before, after)
        return (Verdict("not comparable"), why) if why else None
    if len(before):
        return Verdict("no longer measured"), f"ok -> {_failure(new)}"
    if len(after):
        return Verdict("newly measured"), f"{_failure(base)} -> ok"
    return Verdict("never measured"), f"{_failure(base)} -> {_failure(new)}"


def _failure(runs: pd.DataFrame) -> str:
    """What most runs without a number say."""
    endings = Counter(zip(runs["status"], runs["reason"], strict=True))
    (status, reason), _ = endings.most_common(1)[0]
    return f"{status}: {reason}" if reason else str(status)


def why_not_comparable(before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Why the measured runs of a cell are not compared; "" if they are."""
    for runs in (before, after):
        if len(runs) > MOST_REPEATS:
            return f"{len(runs)} repeats; allowed: up to {MOST_REPEATS}"
    if both := (set(before["log_sha256"]) & set(after["log_sha256"])) - {""}:
        return f"the same logs on both sides: {len(both)}"
    for what, values in (
        ("unit", [set(runs["unit"]) for runs in (before, after)]),
        ("method", [set(runs["method"]) for runs in (before, after)]),
        ("window", [_windows(runs) for runs in (before, after)]),
        ("global batch", [set(runs["global_batch"].dropna()) for runs in (before, after)]),
    ):
        if all(values) and not values[0] & values[1]:
            first, second = (" and ".join(sorted(map(str, side))) for side in values)
            return f"{what} {first} -> {second}"
    return _other_loss(before, after)


def _windows(runs: pd.DataFrame) -> set[str]:
    """The iterations between which runs were measured; those of several trainers are rank 0's."""
    known = runs[runs["method"] != SUMMED].dropna(subset=["first", "last"])
    return {f"{first}:{last}" for first, last in zip(known["first"], known["last"], strict=True)}


def _other_loss(before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Where most repeats start from another loss than the same repeat before: both losses."""
    columns = ["repeat", "start_loss"]
    known = [runs[columns].dropna().drop_duplicates("repeat") for runs in (before, after)]
    losses = known[0].merge(known[1], on="repeat", suffixes=("", "_after"))
    tolerance = TOLERANCE if before["precision"].iloc[0] == "fp32" else IN_FEWER_BITS
    apart = losses[(losses["start_loss"] - losses["start_loss_after"]).abs() > tolerance]
    if len(apart) * 2 <= len(losses):
        return ""
    first = apart.iloc[0]
    return f"first loss {first['start_loss']:.5g} -> {first['start_loss_after']:.5g}"


def _compared(
    cell: Cell, before: pd.DataFrame, after: pd.DataFrame, verdict: Verdict, reason: str
) -> ComparedCell:
    return ComparedCell(
        cell,
        verdict,
        reason,
        n=(len(before), len(after)),
        medians=_pair(before["throughput"], after["throughput"]),
        unit=next(iter([*after["unit"], *before["unit"]]), ""),
        numbers={name: _pair(of(before), of(after)) for name, of in SHOWN.items()},
    )


def _step_ms(runs: pd.DataFrame) -> pd.Series:
    """The milliseconds of a step; those of several trainers have no common number."""
    iterations = (runs["last"] - runs["first"]).astype("float64")
    return (1000 * runs["seconds"] / iterations)[runs["method"] != SUMMED]


SHOWN: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "step_ms": _step_ms,
    "waited": itemgetter("waited"),  # share of the time for which training waited for data
    "peak_memory": itemgetter("peak_memory"),  # the most bytes of a device
    "mhz": itemgetter("mhz"),
    "load": itemgetter("load_during"),  # share of the CPUs' time that other work took
}
"""What else shows a change of a cell."""


def _pair(before: pd.Series, after: pd.Series) -> Pair:
    """The medians of both sides; None where nothing is known."""
    first, second = (float(s.median()) if s.notna().any() else None for s in (before, after))
    return first, second
