"""Trainers that keep their own time: each is measured by the rule, and their speeds are summed.

Each rank of such a run writes a whole step log; all of them come in one file. They are measured
together only while all of them trained: a slow one alone would have the servers to itself. So what
is measured begins when the last has warmed up, and ends when the last has made the iterations of
the window; the others have made more by then.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from math import fsum
from tempfile import SpooledTemporaryFile
from typing import Any

from reperf.logs.events import MARK, event_of
from reperf.logs.facts import Refused
from reperf.logs.format import Format
from reperf.logs.formats import mllog
from reperf.logs.log_file import LogFile
from reperf.logs.logged_runs import LoggedRun
from reperf.measuring import SUMMED
from reperf.measuring.printed_range import Ends

LEAST_OVERLAP = 0.9
"""The part of the longest window in which all trainers were in theirs."""
_MOST_BYTES = 1 << 26
"""How much of the other ranks' lines is kept."""
_NAMES_RANK = b'"rank":'
_BEGINNING = 1 << 20
"""Within how many bytes a rank that keeps its own time writes its first line."""


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
        self._size = 0
        self._lines: dict[int, list[bytes]] = {}
        self.rank_0 = log
        # Such ranks write from the beginning; to look through all of a log takes its time.
        beginning = log.part(0, min(_BEGINNING, log.size))
        if log_format.name == mllog.FORMAT.name and _NAMES_RANK in beginning:
            rank_0 = SpooledTemporaryFile(max_size=_MOST_BYTES)  # noqa: SIM115 - it goes with this
            for _, chunk in log.chunks():
                rank_0.writelines(self._of_rank_0(chunk))
            self.rank_0 = LogFile(rank_0)
        self.ranks = {
            rank: LogFile(BytesIO(b"".join(lines))) for rank, lines in self._lines.items()
        }

    @property
    def has_others(self) -> bool:
        """Whether some lines are of ranks other than 0."""
        return bool(self.ranks.keys() - {0})

    def _of_rank_0(self, piece: bytes) -> Iterator[bytes]:
        for line in piece.splitlines(keepends=True):
            rank = None
            if _NAMES_RANK in line and (at := line.find(MARK)) >= 0:
                rank = mllog.rank_of(event_of(line[at:].rstrip()))
            if not rank:
                yield line
            if rank is not None and self._size <= _MOST_BYTES:
                self._size += len(line)
                self._lines.setdefault(rank, []).append(line)

    def check(self, world_size: int) -> None:
        """Check that the lines of all ranks are there.

        Raises:
            Refused: those of one are missing, or of one that the run has not; or they are too many.
        """
        if self._size > _MOST_BYTES:
            raise Refused("trainers", f"the ranks' lines take more than {_MOST_BYTES >> 20} MiB")
        wanted = set(range(world_size))
        if odd := sorted(wanted ^ self.ranks.keys()):
            what = "no line" if odd[0] in wanted else "a line"
            raise Refused(
                "trainers", f"there is {what} of rank {odd[0]}; the run has {world_size} ranks"
            )


@dataclass(frozen=True)
class Part:
    """What one rank gives.

    Attributes:
        found: the fields of its Measurement.
        run: what the log holds of it.
    """

    found: Mapping[str, Any]
    run: LoggedRun

    @property
    def span(self) -> tuple[float, float]:
        """When its window began and ended, by the wall clock of its node.

        Raises:
            Refused: its lines do not say it.
        """
        stamps = {record.iteration: record.stamp for record in self.run.records}
        first, last = (stamps.get(self.found[end]) for end in ("first", "last"))
        if first is None or last is None:
            raise Refused(
                "trainers", "the lines at the window's ends do not say when they were written"
            )
        return first, last

    def nearest(self, begin: float, end: float) -> Ends:
        """The printed iterations behind its warm-up that ended nearest to two times.

        Returns:
            Those; its window, if it printed nothing behind what is nearest to the first time.
        """
        stamps = {
            record.iteration: record.stamp
            for record in self.run.records
            if record.stamp is not None and record.iteration >= self.found["first"]
        }
        first = min(stamps, key=lambda one: abs(stamps[one] - begin))
        later = [one for one in stamps if one > first]
        if not later:
            return self.found["first"], self.found["last"]
        return first, min(later, key=lambda one: abs(stamps[one] - end))


def side_by_side(parts: Sequence[Part]) -> list[Ends]:
    """Each rank's own window, at the time that all have in common.

    It begins when the last of them has warmed up, and ends when the last has made the window's
    iterations; for each, by its printed iterations that are nearest.

    Args:
        parts: those of all ranks, each measured in the window that was asked for.

    Raises:
        Refused: the lines of one do not say when they were written.
    """
    starts, stops = zip(*(part.span for part in parts), strict=True)
    return [part.nearest(max(starts), max(stops)) for part in parts]


def summed(parts: Sequence[Part]) -> dict[str, Any]:
    """What trainers that trained at the same time give together.

    Args:
        parts: those of all ranks, in their order, each measured in its own window.

    Returns:
        The fields of a Measurement that are not rank 0's. `seconds` are those in which the trainers
        would have made their samples at the speed that all have together.

    Raises:
        Refused: their windows are not at the same time.
    """
    _check_overlap([part.span for part in parts])
    speed = fsum(part.found["throughput"] for part in parts)
    samples = sum(part.found["samples"] for part in parts)
    waits = [part.found["waited"] for part in parts]
    times = [part.found["seconds"] for part in parts]
    names = set.intersection(*(set(part.found["counted"]) for part in parts))
    return {
        "method": SUMMED,
        "throughput": speed,
        "samples": samples,
        "seconds": samples / speed,
        "waited": None
        if None in waits
        else fsum(share * time for share, time in zip(waits, times, strict=True)) / fsum(times),
        "counted": {
            name: sum(part.found["counted"][name] for part in parts)
            for name in parts[0].found["counted"]
            if name in names
        },
    }


def _check_overlap(spans: Sequence[tuple[float, float]]) -> None:
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
