"""Trainers that keep their own time: each is measured by the rule, and their speeds are summed.

Each rank of such a run writes a whole step log; all of them come in one file. They are measured
together only while all of them trained: a slow one alone would have the servers to itself. So what
is measured begins when the last has warmed up, and ends when the last has made the iterations of
the window; the others have made more by then.
"""

from collections.abc import Callable, Iterator
from io import BytesIO
from math import fsum, inf
from tempfile import SpooledTemporaryFile
from typing import Any

from reperf.logs.checks import Refused
from reperf.logs.events import MARK, event_of
from reperf.logs.format import Format
from reperf.logs.formats import mllog
from reperf.logs.log_file import LogFile
from reperf.logs.logged_runs import LoggedRun, training_runs
from reperf.measuring import SUMMED
from reperf.measuring.printed_range import Ends

LEAST_OVERLAP = 0.9
"""The part of the longest window in which all trainers were in theirs."""
_NAMES_RANK = b'"rank":'
_BEGINNING = 1 << 20
"""Within how many bytes a rank that keeps its own time writes its first line."""
_MOST_BYTES = 1 << 26
"""How much of rank 0's lines is kept in memory, and not in a temporary file."""


class Apart:
    """A log without the lines of ranks other than 0 that keep their own time; these lie beside it.

    Args:
        log: the log.
        log_format: its format.

    Attributes:
        rank_0: the log without these lines.
        ranks: rank -> the lines that name it.
    """

    def __init__(self, log: LogFile, log_format: Format) -> None:
        self.rank_0 = log
        self.ranks: dict[int, list[bytes]] = {}
        # Such ranks write from the beginning; to look through all of a log takes its time.
        beginning = log.part(0, min(_BEGINNING, log.size))
        if log_format.name == mllog.FORMAT.name and _NAMES_RANK in beginning:
            rank_0 = SpooledTemporaryFile(max_size=_MOST_BYTES)  # noqa: SIM115 - it goes with this
            for _, chunk in log.chunks():
                rank_0.writelines(self._of_rank_0(chunk))
            self.rank_0 = LogFile(rank_0)

    @property
    def has_others(self) -> bool:
        """Whether some lines are of ranks other than 0."""
        return bool(self.ranks.keys() - {0})

    def _of_rank_0(self, piece: bytes) -> Iterator[bytes]:
        for line in piece.splitlines(keepends=True):
            rank = None
            if _NAMES_RANK in line and (at := line.find(MARK)) >= 0:
                rank = mllog.rank_of(event_of(line[at:].rstrip()))
                self.ranks.setdefault(rank, []).append(line)
            if not rank:
                yield line

    def runs(self, log_format: Format, world_size: int) -> list[LoggedRun]:
        """What the log holds of each rank.

        Raises:
            Refused: the lines of one are missing, of one that the run has not, or of two runs.
        """
        if odd := sorted(set(range(world_size)) ^ self.ranks.keys()):
            what = "a line" if odd[0] in self.ranks else "no line"
            raise Refused(
                "trainers", f"there is {what} of rank {odd[0]}; the run has {world_size} ranks"
            )
        found = []
        for rank, lines in sorted(self.ranks.items()):
            runs = list(training_runs(LogFile(BytesIO(b"".join(lines))), log_format, inf))
            if len(runs) != 1:
                raise Refused("trainers", f"rank {rank} has written {len(runs)} runs; allowed: one")
            found += runs
        return found


def summed(
    runs: list[LoggedRun], measure: Callable[[int, Ends | None], dict[str, Any]]
) -> dict[str, Any]:
    """What trainers that trained at the same time give together.

    Args:
        runs: what the log holds of each rank, in their order.
        measure: measures a rank between two iterations, or in the window that is asked for: the
            fields of its Measurement.

    Returns:
        The fields of a Measurement. `seconds` are those in which the trainers would have made their
        samples at the speed that all have together.

    Raises:
        Refused: one cannot be measured, or their windows are not at the same time.
    """
    ranks = range(len(runs))
    stamps = [
        {one.iteration: one.stamp for one in run.records if one.stamp is not None} for run in runs
    ]

    def span(rank: int, found: dict[str, Any]) -> tuple[float, float]:
        """When its window began and ended, by the wall clock of its node."""
        if not {found["first"], found["last"]} <= stamps[rank].keys():
            raise Refused(
                "trainers", "the lines at the window's ends do not say when they were written"
            )
        return stamps[rank][found["first"]], stamps[rank][found["last"]]

    asked = [measure(rank, None) for rank in ranks]
    starts, stops = zip(*map(span, ranks, asked), strict=True)
    begin, end = max(starts), max(stops)
    parts = []
    for rank in ranks:
        # The printed iterations after its warm-up that ended nearest to the times of all.
        ends = asked[rank]["first"], asked[rank]["last"]
        at = {one: stamp for one, stamp in stamps[rank].items() if one >= ends[0]}
        first = min(at, key=lambda one: abs(at[one] - begin))
        if later := [one for one in at if one > first]:
            ends = first, min(later, key=lambda one: abs(at[one] - end))
        parts.append(measure(rank, ends))
    _check_overlap([span(rank, part) for rank, part in zip(ranks, parts, strict=True)])
    speed = fsum(part["throughput"] for part in parts)
    samples = sum(part["samples"] for part in parts)
    seconds = fsum(part["seconds"] for part in parts)
    waits = [part["waited"] for part in parts]
    waited = None
    if None not in waits:
        waited = fsum(part["waited"] * part["seconds"] for part in parts) / seconds
    names = set.intersection(*(set(part["counted"]) for part in parts))
    return {
        "first": parts[0]["first"],
        "last": parts[0]["last"],
        "method": SUMMED,
        "throughput": speed,
        "samples": samples,
        "seconds": samples / speed,
        "waited": waited,
        "counted": {
            name: sum(part["counted"][name] for part in parts)
            for name in parts[0]["counted"]
            if name in names
        },
    }


def _check_overlap(spans: list[tuple[float, float]]) -> None:
    """Check that all were in their windows for most of the longest of them."""
    starts, stops = zip(*spans, strict=True)
    longest = max(stop - start for start, stop in spans)
    common = max(0.0, min(stops) - max(starts))
    if common < LEAST_OVERLAP * longest:
        raise Refused(
            "trainers",
            f"the {len(spans)} trainers' windows overlap by {common:.3g} s, "
            f"{100 * common / longest if longest else 0:.0f} % of the longest; "
            f"allowed: {LEAST_OVERLAP:.0%} or more",
        )
