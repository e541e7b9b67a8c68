"""MindSpore 1.1 with data sinking: a line that counts steps, then one with their time.

    epoch: 12 step: 10, loss is 6.9087
    epoch time: 935.945 ms, per step time: 93.594 ms

    epoch: 12.0, current epoch percent: 0.100, step: 120, outputs are (..)
    epoch time: 2105.123 ms, per step time: 210.512 ms

The first is ResNet-50, which counts its steps within an epoch of sunk steps; the second is BERT.

Source: MindSpore 1.1 model zoo, official/cv/resnet; DLPerf
MindSpore/resnet50v1.5/extract_mindspore_logs_time.py with its README's flags.
"""

import re
from collections.abc import Callable, Sequence

from reperf.logs.clock import tick
from reperf.logs.estimators import needed
from reperf.logs.facts import Facts, Refused
from reperf.logs.format import DURATION, NUMBER, Estimate, Format, Read, Record, line

TIME = rf"epoch time: {DURATION} ms, per step time: (?P<per_step>\d{{1,9}}\.\d{{1,6}}) ms"


def reader(iteration: Callable[[re.Match[bytes]], int]) -> Callable[[], Read]:
    """A reader that joins each time line to the same rank's count line before it."""

    def remembering() -> Read:
        counted: dict[tuple[int, ...], re.Match[bytes]] = {}

        def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
            if match["step"] is not None:
                counted[rank] = match
                return None
            milliseconds, per_step = match["duration"].decode(), float(match["per_step"])
            span = round(float(milliseconds) / per_step) if per_step else 0
            if rank not in counted or span == 0:
                return None
            return Record(
                iteration=iteration(counted[rank]),
                rank=rank,
                duration=float(milliseconds) / 1000,
                span=span,
                tick=tick(milliseconds) / 1000,
                text=counted[rank][0] + match[0],
            )

        return read

    return remembering


def published(first: int, last: int) -> Callable[[Sequence[Record], Facts], Estimate]:
    """The sum of the times of all ranks, between two counts."""

    def estimate(records: Sequence[Record], facts: Facts) -> Estimate:
        ranks, batch = facts.need("world_size"), facts.need("global_batch")
        inside = [one for one in records if first < one.iteration <= last]
        steps = (last - first) * ranks
        if sum(one.span for one in inside) != steps:
            raise Refused(
                f"the published method needs the times of {last - first} steps of {ranks} ranks"
            )
        milliseconds = 0.0
        for one in inside:
            milliseconds += round(one.duration * 1000, 3)
        seconds = needed(milliseconds) / 1000
        speed = round(float(batch) / (seconds / steps), 2)
        return Estimate(speed, first, last, batch * (last - first), seconds / ranks)

    return estimate


def _iteration(match: re.Match[bytes]) -> int:
    return int(match["epoch"]) * int(match["step"])


FORMAT = Format(
    name="mindspore-resnet50",
    system="mindspore",
    marker=b" step",
    pattern=line(
        rf"epoch: (?P<epoch>\d{{1,9}}) step: (?P<step>\d{{1,9}}), loss is {NUMBER}|{TIME}"
    ),
    remembering=reader(_iteration),
    unit="images/s",
    published=published(100, 200),
)
