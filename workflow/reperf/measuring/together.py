"""Trainers that keep their own time: each is measured by the rule, and their speeds are summed.

Each rank of such a run writes a whole step log; all of them come in one file. They are measured
together only if they trained at the same time: a slow one alone would have the servers to itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from reperf.logs.events import MARK, event_of
from reperf.logs.facts import Refused
from reperf.logs.format import Format
from reperf.logs.formats import mllog
from reperf.logs.logged_runs import LoggedRun

LEAST_OVERLAP = 0.9
"""The part of the longest window in which all trainers were in theirs."""
METHOD = "together"
"""What measurements that are sums call their method."""
_MOST_BYTES = 1 << 26
"""How much of the other ranks' lines is kept."""
_NAMES_RANK = b'"rank":'
_BEGINNING = 1 << 20
"""Within how many bytes a rank that keeps its own time writes its first line."""


class Apart:
    """A log without the lines of ranks other than 0 that keep their own time; these lie beside it.

    Args:
        pieces: the log, as from reperf.logs.scan.blocks.
        log_format: its format.
    """

    def __init__(self, pieces: Iterable[bytes], log_format: Format) -> None:
        self._pieces = pieces
        self._is_ours = log_format.name == mllog.FORMAT.name
        self._size = 0
        self.others: dict[int, list[bytes]] = {}
        """Rank -> its lines, as far as the log has been read."""

    def __iter__(self) -> Iterator[bytes]:
        apart, size = False, 0
        for piece in self._pieces:
            size += len(piece)
            # Such ranks write from the beginning; to look through all of a log takes its time.
            if self._is_ours and (apart or size < _BEGINNING) and _NAMES_RANK in piece:
                apart = True
                yield b"".join(self._of_rank_0(piece))
            else:
                yield piece
            del piece  # its memory is the next one's

    def _of_rank_0(self, piece: bytes) -> Iterator[bytes]:
        for line in piece.splitlines(keepends=True):
            rank = 0
            if _NAMES_RANK in line and (at := line.find(MARK)) >= 0:
                rank = mllog.rank_of(event_of(line[at:].rstrip()))
            if not rank:
                yield line
            elif self._size <= _MOST_BYTES:
                self._size += len(line)
                self.others.setdefault(rank, []).append(line)

    def check(self, world_size: int) -> None:
        """Check that the lines of all ranks are there.

        Raises:
            Refused: those of one are missing, or of one that the run has not; or they are too many.
        """
        if self._size > _MOST_BYTES:
            raise Refused(f"the ranks' lines take more than {_MOST_BYTES >> 20} MiB")
        wanted = set(range(1, world_size))
        if odd := sorted(wanted ^ set(self.others)):
            what = "no line" if odd[0] in wanted else "a line"
            raise Refused(f"there is {what} of rank {odd[0]}; the run has {world_size} ranks")


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
            raise Refused("the lines at the window's ends do not say when they were written")
        return first, last


def summed(parts: Sequence[Part]) -> dict[str, Any]:
    """What trainers that trained at the same time give together.

    Args:
        parts: those of all ranks, in their order, each measured.

    Returns:
        The fields of a Measurement that are not rank 0's. `seconds` are those in which the trainers
        would have made their samples at the speed that all have together.

    Raises:
        Refused: their windows are not the same iterations, or not at the same time.
    """
    windows = {(part.found["first"], part.found["last"]) for part in parts}
    if len(windows) > 1:
        said = " and ".join(f"{first} to {last}" for first, last in sorted(windows)[:2])
        raise Refused(f"the ranks' windows are iterations {said}")
    _check_overlap([part.span for part in parts])
    speed = fsum(part.found["throughput"] for part in parts)
    samples = sum(part.found["samples"] for part in parts)
    waits = [part.found["waited"] for part in parts]
    times = [part.found["seconds"] for part in parts]
    names = set.intersection(*(set(part.found["counted"]) for part in parts))
    return {
        "method": METHOD,
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
            f"the {len(spans)} trainers' windows overlap by {common:.3g} s, "
            f"{100 * common / longest if longest else 0:.0f} % of the longest; "
            f"allowed: {LEAST_OVERLAP:.0%} or more"
        )
