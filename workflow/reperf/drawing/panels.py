"""What the numbers of a suite say: who is fastest, by how much, how sure; and what spoils them.

The page, the figures and the tables for papers take their words and their marks from here.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import Any, Generic, Literal, TypeVar

import pandas as pd

from reperf.drawing.labels import series_of
from reperf.measuring.marks import BUSY, NOT_USABLE, WAITED, is_doubtful, is_scattered, marks_of
from reperf.measuring.statistics import Ratio, compare, ratio, repeats_to_resolve
from reperf.number_format import ABSENT, difference, in_four_digits, percent, sharing
from reperf.tables import CELL
from reperf.text import count

Row = Any  # a row of a table, as pandas' itertuples gives it
_STEP_TIME = re.compile(r"\b(\d+):(\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?!\S)")
"""A part of the column step_times."""


@dataclass(frozen=True)
class Entry:
    """A cell that is compared with others."""

    row: Row  # of summary.csv
    series: str
    throughputs: tuple[float, ...]  # of the runs that gave one

    @property
    def measured(self) -> bool:
        return bool(pd.notna(self.row.throughput_median))

    def has(self, *marks: str) -> bool:
        return any(mark.startswith(marks) for mark in self.marks)

    @property
    def bound_by_loader(self) -> bool:
        """Whether training waited for data for more than a trifle of its time."""
        return self.has(WAITED)

    @property
    def beside(self) -> bool:
        """Whether other work took more than a trifle of its machine while it was measured."""
        return self.has(BUSY, NOT_USABLE)

    @property
    def unusable(self) -> bool:
        """Whether other work took so much of its machine that its number is of no use."""
        return self.has(NOT_USABLE)

    @property
    def scattered(self) -> bool:
        """Whether its repeats, or the baseline's, scatter so much that its speedup says nothing."""
        return is_scattered(self.row._asdict())

    @property
    def scales(self) -> bool:
        """Whether it has a speedup over another topology than its own."""
        return bool(pd.notna(self.row.speedup) and self.row.topology != self.row.baseline)

    @cached_property
    def marks(self) -> list[str]:
        """What to know before reading its number, in a few words each; the worst first."""
        return marks_of(self.row._asdict())

    @property
    def doubtful(self) -> bool:
        """Whether one of them says that the number is doubtful."""
        return any(map(is_doubtful, self.marks))

    def speed_of(self, throughput: float) -> float:
        """A throughput; of a unit that counts time, such as ms/iteration, its inverse."""
        return throughput if self.row.unit.endswith("/s") else 1 / throughput

    @property
    def speeds(self) -> list[float]:
        """Those of its runs; where they are not known, that of its median."""
        return [*map(self.speed_of, self.throughputs or [self.row.throughput_median])]

    @property
    def speed(self) -> float:
        """Their median."""
        return median(self.speeds)


Compared = TypeVar("Compared", bound=Entry)

Verdict = Literal["fastest", "leads", "alone", "slower", "cannot be told", "untested"]


@dataclass(frozen=True)
class Rival(Generic[Compared]):
    """A measured cell, compared with the fastest one of its device count."""

    cell: Compared
    ratio: Ratio  # to the fastest
    verdict: Verdict
    """fastest: all others are slower for sure. leads: the highest median, and no more is sure.
    alone: nothing else was measured."""

    @property
    def place(self) -> str:
        """The verdict, or how far it is from the fastest: "−2.7 % (−3.1 to −2.3 %)"."""  # noqa: RUF002
        if self.verdict in ("fastest", "leads", "alone"):
            return ABSENT if self.verdict == "alone" else self.verdict
        text = f"{difference(self.ratio.estimate)}{_interval(self.ratio)}"
        return text if self.sure else f"{text} ?"

    @property
    def sure(self) -> bool:
        """Whether its place is: the fastest, slower than that, or the only one."""
        return self.verdict in ("fastest", "slower", "alone")


@dataclass(frozen=True)
class Panel(Generic[Compared]):
    """The cells of one device count: the measured ones by their speed, and the others."""

    ranked: tuple[Rival[Compared], ...]
    missing: tuple[Compared, ...]
    again: bool  # whether the panel before it has as many devices, on fewer nodes

    @property
    def _row(self) -> Row:
        return self.ranked[0].cell.row if self.ranked else self.missing[0].row

    @property
    def devices(self) -> int:
        return int(self._row.num_nodes) * int(self._row.devices_per_node)

    @property
    def title(self) -> str:
        """What people call it: "16 GPUs on 2 nodes"."""
        return topology_in_words(self._row)

    @property
    def size(self) -> str:
        """Its number of devices, without nodes unless another panel has as many: "16 GPUs"."""
        return self.title if self.again else " ".join(self.title.split()[:2])

    @property
    def first(self) -> Rival[Compared]:
        return self.ranked[0]

    @property
    def load(self) -> float:
        """The most that other work took while one of its unusable cells was measured; 0 if none."""
        loads = (one.cell.row.load for one in self.ranked if one.cell.unusable)
        return float(max(loads, default=0))


def topology_in_words(row: Row) -> str:
    """A row's topology as people say it: "16 GPUs on 2 nodes", "3 devices share 2 CPUs"."""
    named = _devices(int(row.num_nodes) * int(row.devices_per_node), row)
    return sharing(row) or (f"{named} on {row.num_nodes} nodes" if row.num_nodes > 1 else named)


def _devices(number: int, row: Row) -> str:
    return count(number, "GPU" if row.device == "cuda" else "device")


def cell_of(row: Row) -> tuple[str, ...]:
    """What a row's cell is told by, in either table."""
    return tuple(str(getattr(row, column)) for column in CELL)


def step_times_of(run: Row) -> list[tuple[str, str]]:
    """The iterations of a row of measurements.csv whose times it has, and these in milliseconds."""
    return _STEP_TIME.findall(run.step_times)


def entries_of(cells: pd.DataFrame, measurements: pd.DataFrame | None = None) -> list[Entry]:
    """The cells of a suite, with the throughputs of their runs as far as they are known."""
    runs: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for run in () if measurements is None else measurements.itertuples():
        if pd.notna(run.throughput):
            runs[cell_of(run)].append(run.throughput)
    named = zip(cells.itertuples(), series_of(cells), strict=True)
    return [Entry(row, series, tuple(runs[cell_of(row)])) for row, series in named]


def panels(cells: Iterable[Compared]) -> list[Panel[Compared]]:
    """A panel for each device count on which a suite was tried, the fewest devices first."""
    groups: dict[tuple[Any, ...], list[Compared]] = defaultdict(list)
    tried = [cell for cell in cells if cell.row.status != "unsupported"]
    for cell in tried:
        row = cell.row
        devices = int(row.num_nodes) * int(row.devices_per_node)
        groups[devices, int(row.num_nodes), sharing(row), row.unit].append(cell)
    pairs = pairwise([(0,), *sorted(groups)])
    return [_panel(groups[key], again=key[0] == before[0]) for before, key in pairs]


def finding(shown: Sequence[Panel[Any]]) -> str:
    """One sentence with what a suite's panels say, and only as strong as they are.

    It names a fastest cell only if the rank test tells all others of its device count from it, and
    other work took no larger part of the machine.
    """
    measured = [panel for panel in shown if panel.ranked]
    compared = [panel for panel in measured if len(panel.ranked) > 1]
    if not measured:
        return "Nothing was measured."
    if not compared:
        return _alone(measured[-1])
    if all(panel.load for panel in compared):
        load = max(panel.load for panel in compared)
        return f"No finding: other work took up to {100 * load:.0f} % of the machine."
    outcomes: dict[str, list[Panel[Any]]] = defaultdict(list)
    for panel in compared:
        outcomes[_outcome(panel)].append(panel)
    last, clauses = compared[-1], []
    for outcome, where in outcomes.items():
        all_sizes = "any size" if outcome.startswith("no ") else "every size"
        on_all = len(where) == len(shown) > 1
        clauses.append(f"{outcome} on {all_sizes if on_all else _sizes(where)}")
        if where == [last] and not last.load:
            clauses[-1] += f": {_detail(last)}"
    if outcomes[_outcome(last)] != [last] and not last.load:
        clauses.append(f"on {last.size} {_detail(last)}")
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}."


def _panel(cells: list[Compared], *, again: bool) -> Panel[Compared]:
    measured = [cell for cell in cells if cell.measured]
    measured.sort(key=lambda cell: -cell.speed)
    missing = tuple(cell for cell in cells if not cell.measured)
    if not measured:
        return Panel((), missing, again)
    best, *others = measured
    tests = compare([cell.speeds for cell in others], best.speeds)
    fewest = min(len(cell.speeds) for cell in measured)
    unsure: Verdict = "cannot be told"
    if others and fewest < repeats_to_resolve(len(others)):
        unsure = "untested"
    spoilt = any(cell.unusable for cell in measured)
    verdicts: list[Verdict] = [
        test if test == "slower" and not spoilt else unsure for test, _ in tests
    ]
    sure = all(verdict == "slower" for verdict in verdicts)
    first: Verdict = "alone" if not others else "fastest" if sure else "leads"
    ranked = [
        Rival(cell, ratio(cell.speeds, best.speeds), verdict)
        for cell, verdict in zip(measured, [first, *verdicts], strict=True)
    ]
    return Panel(tuple(ranked), missing, again)


def _outcome(panel: Panel[Any]) -> str:
    """What a panel with rivals says, without a place."""
    if panel.load:
        return "other work spoils the numbers"
    if panel.first.verdict == "fastest":
        return f"{panel.first.cell.series} is fastest"
    untested = any(one.verdict == "untested" for one in panel.ranked)
    return "no clear winner yet" if untested else "no clear winner"


def _sizes(where: Sequence[Panel[Any]]) -> str:
    """The device counts of some panels: "1, 8 and 16 GPUs"."""
    *before, last = where
    sizes = ", ".join(one.size if one.again else str(one.devices) for one in before)
    return f"{sizes} and {last.size}" if before else last.size


def _detail(panel: Panel[Any]) -> str:
    """How far the next is below the fastest, as its row has it, and how sure that is."""
    rival = panel.ranked[1]
    first, second, over = panel.first.cell, rival.cell, rival.ratio
    if panel.first.verdict == "fastest":
        return f"{second.series} is {_below(over)} it{_interval(over, below=True)}"
    unsure = [one.cell.series for one in panel.ranked if one.verdict != "slower"][1:]
    if rival.verdict == "cannot be told" or len(unsure) < len(panel.ranked) - 1:
        if len(unsure) > 1:
            return f"{first.series} cannot be told from {len(unsure)} others"
        within = _interval(over) if unsure == [second.series] else ""
        return f"{unsure[0]} cannot be told from {first.series}{within}"
    fewest, most = sorted((len(first.speeds), len(second.speeds)))
    needed = repeats_to_resolve(len(panel.ranked) - 1)
    below = f"{second.series} is {_below(over)} {first.series}"
    if most == 1:
        return f"{below} in one run each; {needed} repeats would test it"
    overlap = "do not overlap" if max(second.speeds) < min(first.speeds) else "overlap"
    repeats = f"{most} repeats" if fewest == most else "repeats"
    return f"{below}; their {repeats} {overlap}, and {needed} repeats would test it"


def _below(over: Ratio) -> str:
    return f"{percent(1 - over.estimate)} below"


def _interval(over: Ratio, *, below: bool = False) -> str:
    """The ends of a ratio, as differences: " (−0.7 to +0.9 %)"; "" without any."""  # noqa: RUF002
    if over.low is None or over.high is None:
        return ""
    if below:
        return f" ({100 * (1 - over.high):.1f} to {percent(1 - over.low)})"
    return f" ({difference(over.low, '')} to {difference(over.high)})"


def _alone(panel: Panel[Any]) -> str:
    """What a suite of one series says: how fast it is on the most devices, and its speedup."""
    cell = panel.first.cell
    if cell.unusable:
        return f"No finding: other work took up to {100 * cell.row.load:.0f} % of the machine."
    text = f"{cell.series}: {in_four_digits(cell.row.throughput_median)} {cell.row.unit}"
    text += f" on {panel.size}"
    if cell.scales:
        over = cell.row.baseline
        if known := re.fullmatch(r"(\d+)n(\d+)g", over):
            over = _devices(int(known[1]) * int(known[2]), cell.row)
        times = f", {cell.row.speedup:.3g} times as fast as on {over}"
        text += "; its repeats scatter too much for a speedup" if cell.scattered else times
    return f"{text}."
