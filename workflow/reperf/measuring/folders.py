"""The median and the spread of the logs in each folder: mostly repeats of one training."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePath
from statistics import median
from typing import NamedTuple

from reperf.logs.facts import FACT_NAMES, called, shown
from reperf.measuring.answer import Answer
from reperf.measuring.counted import Counted

OF_ONE_RUN = frozenset({"start_loss", "hosts", "run_start", "run_stop", "run_span"})
"""The facts that may differ between repeats of a training."""


class OfFolder(NamedTuple):
    """What the runs in a folder gave, those of one configuration."""

    folder: str
    apart: str
    """Facts that tell it apart from others in the folder, if there are any."""
    n: int
    median: float
    low: float
    high: float
    unit: str
    batch: int | None
    """The global batch."""


def of_folders(found: Iterable[Answer]) -> list[OfFolder]:
    """Summarise what was measured, by folder and by what is known about the runs.

    Args:
        found: what each log gave; refused ones do not count.

    Returns:
        Each folder, in the order in which they were found. A run of ours has a folder to itself:
        the one around it counts.
    """
    groups: dict[str, dict[_Known, list[Answer]]] = defaultdict(lambda: defaultdict(list))
    for answer in found:
        if answer.measured.status == "ok":
            groups[_folder(answer)][_known(answer)].append(answer)
    return [
        _summary(folder, _apart(known, [*configurations]), some)
        for folder, configurations in groups.items()
        for known, some in configurations.items()
    ]


_Known = tuple[tuple[str, object], ...]
"""What must be the same for runs to be repeats of each other."""


def _folder(answer: Answer) -> str:
    path = PurePath(answer.measured.log)
    return str(path.parents[1] if answer.record and len(path.parents) > 1 else path.parent)


def _known(answer: Answer) -> _Known:
    measured, facts = answer.measured, answer.facts
    known: dict[str, object] = {
        name: facts.get(name) for name in facts.tellers() if name not in OF_ONE_RUN
    }
    known |= {"unit": measured.unit, "format": measured.format}
    known["global_batch"] = measured.global_batch
    return tuple(sorted(known.items()))


def _apart(known: _Known, configurations: list[_Known]) -> str:
    """The first few facts that tell a configuration from the others in its folder."""
    order = ["format", *FACT_NAMES]
    facts = [fact for fact in known if fact[0] not in ("global_batch", "unit")]
    facts.sort(key=lambda fact: order.index(fact[0]) if fact[0] in order else len(order))
    found, others = [], [other for other in configurations if other != known]
    for fact in facts:
        if any(fact not in other for other in others):
            found.append(fact)
            others = [other for other in others if fact in other]
    return ", ".join(f"{called(name)} {shown(value)}" for name, value in found)


def _summary(folder: str, apart: str, found: list[Answer]) -> OfFolder:
    counted = Counted()
    runs = [
        answer.measured for answer in found if not counted.again(answer.measured.log, None, answer)
    ]
    speeds = [run.throughput or 0.0 for run in runs]
    first = runs[0]
    return OfFolder(
        folder,
        apart,
        len(speeds),
        median(speeds),
        min(speeds),
        max(speeds),
        first.unit or "",
        first.global_batch,
    )
