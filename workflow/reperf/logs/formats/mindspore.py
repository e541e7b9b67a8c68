"""MindSpore 1.1 with data sinking: a line that counts steps, then one with their time."""

import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from reperf.logs.checks import Refused
from reperf.logs.clock import tick
from reperf.logs.estimators import needed
from reperf.logs.facts import Facts
from reperf.logs.format import Estimate, Format, Prints, Published, Read, Record

_TIMES = r"epoch time: {DURATION} ms, per step time: (?P<per_step>\d{1,9}\.\d{1,6}) ms"


class _Waiting(NamedTuple):
    """A count line."""

    line: re.Match[bytes]
    sure: bool  # whether the next time is its own: no other count waits for one
    timed: bool = False


def _joined(_format: Format) -> Read:
    """A reader that joins each time line to the same rank's count line before it.

    Steps are counted within the line's epoch, if it names one whole epoch. A time that may be
    another count's covers no iterations.
    """
    counted: dict[tuple[int, ...], _Waiting] = {}

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        count = counted.get(rank)
        if match["step"] is not None:
            counted[rank] = _Waiting(match, sure=count is None or count.timed)
            return None
        milliseconds, per_step = match["duration"].decode(), float(match["per_step"])
        span = round(float(milliseconds) / per_step) if per_step else 0
        if count is None or span == 0:
            return None
        counted[rank] = count._replace(timed=True)
        return Record(
            iteration=int(count.line["step"]) * int(count.line.groupdict().get("epoch", 1)),
            rank=rank,
            duration=float(milliseconds) / 1000,
            span=span if count.sure and not count.timed else 0,
            tick=tick(milliseconds) / 1000,
            text=count.line[0] + match[0],
        )

    return read


def _published(first: int, last: int) -> Published:
    """The sum of the times of all ranks, between two counts."""

    def estimate(records: Sequence[Record], facts: Facts) -> Estimate:
        ranks, batch = facts.need("world_size"), facts.need("global_batch")
        inside = [record for record in records if first < record.iteration <= last]
        steps = (last - first) * ranks
        if sum(record.span for record in inside) != steps:
            why = f"the published method needs the times of {last - first} steps of {ranks} ranks"
            raise Refused("method", why)
        milliseconds = 0.0
        for record in inside:
            milliseconds += round((record.duration or 0.0) * 1000, 3)
        seconds = needed(milliseconds) / 1000
        speed = round(float(batch) / (seconds / steps), 2)
        return Estimate(speed, first, last, batch * (last - first), seconds / ranks)

    estimate.__doc__ = f"sum over all ranks of the times of {first} to {last}"
    return estimate


_format = partial(
    Format, system="mindspore", marker=b" step", remembering=_joined, prints=Prints.IN_TWO_LINES
)

MINDSPORE_RESNET50 = _format(
    name="mindspore-resnet50",
    pattern=r"epoch: (?P<epoch>\d{1,9}) step: (?P<step>\d{1,9}), loss is {NUMBER}|" + _TIMES,
    unit="images/s",
    published=_published(100, 200),
)
"""MindSpore 1.1 with data sinking: a line that counts steps, then one with their time.

    epoch: 12 step: 10, loss is 6.9087
    epoch time: 935.945 ms, per step time: 93.594 ms

Steps are counted within an epoch of sunk steps.

Source: MindSpore 1.1 model zoo, official/cv/resnet; DLPerf
MindSpore/resnet50v1.5/extract_mindspore_logs_time.py with its README's flags.
"""

MINDSPORE_BERT = _format(
    name="mindspore-bert",
    pattern=r"epoch: \d{1,9}\.\d{1,3}, current epoch percent: \d\.\d{1,6}, step: (?P<step>\d{1,9}), "
    r"outputs are [^\r\n]{0,300}|" + _TIMES,
    unit="sentences/s",
    published=_published(20, 120),
)
"""MindSpore 1.1's BERT with data sinking: a line that counts steps, then one with their time.

    epoch: 12.0, current epoch percent: 0.100, step: 120, outputs are (..)
    epoch time: 2105.123 ms, per step time: 210.512 ms

Source: MindSpore 1.1 model zoo, official/nlp/bert; DLPerf
MindSpore/bert/extract_mindspore_logs_time.py.
"""
