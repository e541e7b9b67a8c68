"""Trainers that keep their own time: each is measured by the rule, and their speeds are summed.

Each rank of such a run writes a whole step log; all of them come in one file. They are measured
together only while all of them trained: a slow trainer alone would have the servers to itself. So
what is measured begins when the last has warmed up, and ends when the last has made the iterations
of the window; the others have made more by then.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import fsum, inf
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from reperf.logs.checks import Refused
from reperf.logs.events import MARK, event_of
from reperf.logs.format import Format
from reperf.logs.formats import mllog
from reperf.logs.log_file import LogFile
from reperf.logs.logged_runs import LoggedRun, training_runs
from reperf.measuring import SUMMED
from reperf.measuring.window_rule import Ends

LEAST_OVERLAP = 0.9  # the part of the longest window in which all trainers were in theirs
_NAMES_RANK = b'"rank":'
_BEGINNING = 1 << 20  # within how many bytes a rank that keeps its own time writes its first line
_IN_MEMORY = 1 << 24
"""How many bytes of a rank's lines are kept in memory, and not in a temporary file."""


def split_by_rank(log: LogFile, log_format: Format) -> dict[int, LogFile]:
    """The lines of each rank that keeps its own time; lines that name no rank are rank 0's.

    Any other log is rank 0's alone.
    """
    # Such ranks write from the beginning; to look through all of a log takes its time.
    beginning = log.part(0, min(_BEGINNING, log.size))
    if log_format.name != mllog.FORMAT.name or _NAMES_RANK not in beginning:
        return {0: log}
    files: dict[int, IO[bytes]] = defaultdict(partial(SpooledTemporaryFile, max_size=_IN_MEMORY))
    for _, chunk in log.chunks():
        for line in chunk.splitlines(keepends=True):
            start = line.find(MARK) if _NAMES_RANK in line else -1
            rank = 0 if start < 0 else mllog.rank_of(event_of(line[start:].rstrip()))
            files[rank].write(line)
    return {0: LogFile(files[0])} | {rank: LogFile(file) for rank, file in sorted(files.items())}


def runs_of_ranks(
    logs: Mapping[int, LogFile], log_format: Format, world_size: int
) -> list[LoggedRun]:
    """What each rank has logged, in their order; refused if one has none, or has two runs."""
    if odd := sorted(set(range(world_size)) ^ logs.keys()):
        what = "a line" if odd[0] in logs else "no line"
        why = f"there is {what} of rank {odd[0]}; the run has {world_size} ranks"
        raise Refused("trainers", why)
    runs = []
    for rank, log in logs.items():
        logged = list(training_runs(log, log_format, inf))
        if len(logged) != 1:
            raise Refused("trainers", f"rank {rank} has written {len(logged)} runs; allowed: one")
        runs += logged
    return runs


def summed(
    runs: Sequence[LoggedRun], measure: Callable[[int, Ends | None], dict[str, Any]]
) -> dict[str, Any]:
    """What trainers that trained at the same time give together.

    Args:
        runs: what each rank has logged, in their order.
        measure: measures a rank between two iterations, or in the window that is asked for: the
            fields of its Measurement.

    Returns:
        The fields of a Measurement. `seconds` are those in which the trainers would have made their
        samples at the speed that all have together.

    Raises:
        Refused: a trainer cannot be measured, or their windows are not at the same time.
    """
    ranks = range(len(runs))
    stamps = [
        {record.iteration: record.stamp for record in run.records if record.stamp is not None}
        for run in runs
    ]

    def span(rank: int, window: dict[str, Any]) -> tuple[float, float]:
        """When its window began and ended, by the wall clock of its node."""
        try:
            return stamps[rank][window["first"]], stamps[rank][window["last"]]
        except KeyError:
            raise Refused(
                "trainers", "the lines at the window's ends do not say when they were written"
            ) from None

    windows = [measure(rank, None) for rank in ranks]
    starts, stops = zip(*map(span, ranks, windows), strict=True)
    begin, end = max(starts), max(stops)
    parts = []
    for rank, window in enumerate(windows):
        # The printed iterations after its warm-up that ended nearest to the times of all.
        ends = window["first"], window["last"]
        times = {one: stamp for one, stamp in stamps[rank].items() if one >= ends[0]}
        first = min(times, key=lambda one: abs(times[one] - begin))
        if later := [one for one in times if one > first]:
            ends = first, min(later, key=lambda one: abs(times[one] - end))
        parts.append(measure(rank, ends))
    _check_overlap(list(map(span, ranks, parts)))
    speed = fsum(part["throughput"] for part in parts)
    samples = sum(part["samples"] for part in parts)
    seconds = fsum(part["seconds"] for part in parts)
    waited = None
    if all(part["waited"] is not None for part in parts):
        waited = fsum(part["waited"] * part["seconds"] for part in parts) / seconds
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
            if all(name in part["counted"] for part in parts)
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
