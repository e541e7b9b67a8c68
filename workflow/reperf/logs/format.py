"""What a log format is, and what a record of a log holds."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

Fact = tuple[str, object]
"""A name, as in reperf.facts.NAMES, and what the log says about it."""


class Record(NamedTuple):
    """One printed iteration (or range of iterations) of one rank."""

    iteration: int
    """As the log prints it; of a range, its last."""
    rank: tuple[int, ...] = ()
    """From the launcher's labels on the line, outermost first; () where lines carry none."""
    epoch: int = 0
    time: float | None = None
    """Seconds on the log's clock, whose zero is any."""
    duration: float | None = None
    """Seconds that the record's iterations took, where the log prints that."""
    rate: float | None = None
    """The printed speed, in the format's own terms."""
    samples: float | None = None
    """Samples that all ranks have trained on so far, where the log prints that."""
    text: bytes = b""
    """The record as it stands in the log."""


@dataclass(frozen=True)
class Format:
    """One way of logging.

    Attributes:
        name: as given to `reperf measure --format`.
        source: where the format is defined.
        marker: bytes that stand once in every record, and seldom elsewhere: what is searched.
        pattern: matches one record within its line. What it captures goes to `read`. It must
            not match a record that is cut off behind its last number.
        read: makes a record of a match and the rank of its line; None if it is none after all.
        facts: finds what the log says about its run in the text before the run's first record.
        end: found behind a run's last record if the run came to its end; None if the format has
            no such line.
        counts_from: the number of the first iteration.
        unit: of a sample; None if the workload decides.
    """

    name: str
    source: str
    marker: bytes
    pattern: re.Pattern[bytes]
    read: Callable[[re.Match[bytes], tuple[int, ...]], Record | None]
    facts: Callable[[bytes], Iterable[Fact]]
    end: re.Pattern[bytes] | None = None
    counts_from: int = 1
    unit: str | None = None


def facts_by(patterns: Mapping[str, str]) -> Callable[[bytes], Iterator[Fact]]:
    """A finder of facts that are whole numbers.

    Args:
        patterns: name of the fact -> expression whose first group is the number.
    """
    compiled = {name: re.compile(text.encode()) for name, text in patterns.items()}

    def find(head: bytes) -> Iterator[Fact]:
        for name, pattern in compiled.items():
            for match in pattern.finditer(head):
                yield name, int(match[1])

    return find
