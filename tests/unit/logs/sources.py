"""Logs whose numbers are known, to be edited: real ones, and written ones."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise, product

from reperf.config import Window
from reperf.logs.events import facts_in
from reperf.logs.facts import Fact
from reperf.logs.format import Format, Prints
from reperf.logs.formats import formats
from reperf.logs.log_file import opened
from reperf.logs.scan import find_records
from reperf.measuring.measure import Measurement, Method, measure_log

from tests.helpers.step_logs import planned_log
from tests.unit.logs.asking import encode
from tests.unit.logs.edited import OF_BYTES, OF_COUNTS, OF_STEP_LOGS, OF_TWO, counts_twice
from tests.unit.logs.test_public_lines import MEASURED, read
from tests.unit.logs.written import STYLES, TIMED, uneven

RIGHT, REFUSED, EDITED, LOST, WRONG = "right", "refused", "edited number", "lost time", "WRONG"
"""What an edited log may give."""
TOLERANCE = 0.01  # how far a number may be from the truth before it is wrong
Ends = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Source:
    """A log, and what is asked of it."""

    name: str  # of the log
    content: bytes  # the log
    method: Method = field(default_factory=Method)  # how it is measured
    log_format: str | None = None  # name of its format; None: found from the content
    told: tuple[Fact, ...] = ()  # what the command line says
    _known: dict[tuple[bytes, Ends], list[Measurement]] = field(default_factory=dict, init=False)

    def takes(self, edit: str) -> bool:
        """Whether an edit is of logs like this one."""
        if edit in OF_STEP_LOGS:  # such as say what their run prints
            return b'"print_every"' in self.content
        return edit not in OF_COUNTS or counts_twice(self.content)

    def verdict(self, edit: str, content: bytes, other: bytes) -> str:
        """What this log gave when it was edited, perhaps with another one.

        A number of an edit that writes others can be wrong where nothing contradicts it, and one
        of a log whose evaluations are lost can be as wrong as they were long.
        """
        merged = other if edit in OF_TWO else None
        found = self.measured(content)
        if all(self._is_right(one, merged) for one in found):
            return RIGHT if found else REFUSED
        if self._loses_a_time(content, merged):
            return LOST
        is_edited = edit in OF_BYTES and not self._said(content) <= self._said(self.content)
        return EDITED if is_edited else WRONG

    def measure(self, content: bytes, **method: object) -> list[Measurement]:
        """Ask the same of another log, or by another method."""
        chosen = formats()[self.log_format] if self.log_format else None
        asked, told = replace(self.method, **method), [("the command line", self.told)]
        return [one for one, *_ in measure_log(self.name, io.BytesIO(content), asked, chosen, told)]

    def measured(self, content: bytes, **method: object) -> list[Measurement]:
        """The runs in another log that give a number."""
        return [one for one in self.measure(content, **method) if one.throughput is not None]

    def _is_right(self, found: Measurement, merged: bytes | None) -> bool:
        """Whether a number is that of this log in its window, or of the one merged with it."""
        ends = found.first, found.last
        truths = [true.throughput for true in self._true(self.content, ends)]
        if merged is not None:
            # Of which of the two logs a batch is, nothing says.
            batch = (("global_batch", found.global_batch),)
            told = [replace(self, told=one) for one in ((), batch, (*batch, ("accumulation", 1)))]
            asked = product((self, *told), (self.content, merged))
            for true in (true for one, log in asked for true in one._true(log, ends)):
                truths.append(true.throughput)
                if true.global_batch and found.global_batch:
                    truths.append(true.throughput * found.global_batch / true.global_batch)
        return any(abs(found.throughput - truth) <= TOLERANCE * truth for truth in truths)

    def _true(self, content: bytes, ends: Ends) -> list[Measurement]:
        """What is right between two iterations, in each epoch that has them.

        A log is measured in its first epoch; what is left of it may begin with a later one. And a
        line that is the first left, and prints a mean, stands for the last of its iterations;
        a line that is the only one left gives that iteration's number alone.
        """
        if (key := (content, ends)) in self._known:
            return self._known[key]
        how = {"ends": ends, "widest": False}
        found = [
            one for part in self._from_each_epoch(content) for one in self.measured(part, **how)
        ]
        if not found:
            start, stop = ends[0] + 1, ends[1]
            interval = self.measure(content, **how)[0].interval or 1
            first = start - interval if start == stop else start
            rest, mean = (
                self.measured(content, **how | {"ends": both})
                for both in ((first, stop), (start - interval, start))
            )
            found = [*rest, *(_with_one_more(*both, interval) for both in product(rest, mean))]
        self._known[key] = found
        return found

    def _format_of(self, content: bytes) -> Format | None:
        name = self.log_format or self.measure(content)[0].format
        return formats()[name] if name else None

    def _records(self, content: bytes) -> list[tuple]:
        """What is read of a log: where each record is, and the record."""
        if not (log_format := self._format_of(content)):
            return []
        return list(find_records(_plain(content), log_format, log_format.reader()))

    def _said(self, content: bytes) -> set[tuple]:
        """The facts that a log says, and its records."""
        if not (log_format := self._format_of(content)):
            return set()
        records = (record._replace(text=b"") for *_, record in self._records(content))
        return {*records, *log_format.facts(_plain(content)), *facts_in(content)}

    def _loses_a_time(self, content: bytes, merged: bytes | None) -> bool:
        """Whether an edited log lacks lines, of this one or the other, that say what a time is of.

        These are the lines of an evaluation; and where one line counts and the next one tells the
        time, those between a count and the time of another.
        """

        def joined(log: bytes) -> set[tuple]:
            log_format = self._format_of(log)
            if not log_format or Prints.IN_TWO_LINES not in log_format.prints:
                return set()
            return {(one.iteration, one.duration) for *_, one in self._records(log)}

        whole = [self.content] if merged is None else [self.content, merged]
        if content.count(b"eval_st") < sum(log.count(b"eval_st") for log in whole):
            return True
        return not joined(content) <= set().union(*map(joined, whole))

    def _from_each_epoch(self, content: bytes) -> Iterator[bytes]:
        """A log, and what is left of it if it begins with each of its later epochs."""
        yield content
        content = _plain(content)
        records = self._records(content)
        for (*_, before), (start, _, record) in pairwise(records):
            if record.epoch > before.epoch:
                yield content[: records[0][0]] + content[start:]


def _with_one_more(found: Measurement, mean: Measurement, interval: int) -> Measurement:
    """What was found, and one iteration in front of it, of a mean of so many."""
    samples, seconds = (
        getattr(found, name) + getattr(mean, name) / interval for name in ("samples", "seconds")
    )
    return replace(found, throughput=samples / seconds)


def _plain(content: bytes) -> bytes:
    """A log without its colours, as it is read."""
    log = opened(io.BytesIO(content))
    return log.part(0, log.size)


@cache
def all_sources() -> list[Source]:
    """Real logs and lines, written logs of each format that tells times, step logs with a plan.

    Each step of a written log takes another time. Each log is asked for a window and the widest.
    """
    found = []
    for log in MEASURED:
        for method in (Method(ends=log.ends), Method(window=Window(warmup=1), widest=True)):
            found.append(Source(log.log, read(log.log, log.edits), method, None, log.facts))
    for name in TIMED:
        content, told = encode(uneven(name)), STYLES[name].facts
        for method in (Method(), Method(widest=True)):
            found.append(Source(f"{name}, written", content, method, name, told))
    for plan, ends in (
        ({}, (20, 120)),
        ({"iterations": 6, "every": 1}, (1, 6)),
        ({"iterations": 64, "every": 4}, (24, 56)),
    ):
        content = encode(planned_log(**plan))
        for method in (Method(ends=ends), Method(window=Window(warmup=ends[0]), widest=True)):
            found.append(Source(f"step log of {plan or 'the usual plan'}", content, method))
    return found
