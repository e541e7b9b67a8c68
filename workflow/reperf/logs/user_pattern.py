"""A format that a user describes: a regular expression of one line, for logs that nobody knows."""

import re
import signal
from collections.abc import Iterator
from functools import cache, partial
from math import isfinite
from re import _constants, _parser  # type: ignore[attr-defined]  # private; only a pattern's tree tells what all of its matches hold
from typing import NoReturn

from reperf.errors import ReperfError
from reperf.logs.clock import ANY_CLOCK, of_any
from reperf.logs.facts import LARGEST_FACT, Fact
from reperf.logs.format import Format, Record
from reperf.text import printable

GROUPS = (
    "iteration",
    "time",
    "duration",
    "duration_ms",
    "samples",
    "span",
    "epoch",
    "rank",
    "rate",
)
"""What a pattern may name: `samples` are those of all devices so far, `span` the iterations that a
duration is of, `rate` the speed of all devices in samples/s. Other groups do not matter."""
PATIENCE = 5.0
"""Seconds that a pattern may take for one line."""
PATTERN = "pattern"
"""The name of such a format."""
UNMATCHED = "no line matches the pattern, or none in which its groups hold numbers and times that can be read"
_COUNTS = ("iteration", "samples", "span", "epoch", "rank")
_TIMES = {"time", "duration", "duration_ms"}
_LONGEST = 40
_FLAGS = re.compile(r"(?s)((?:\(\?[a-zA-Z]+\))*)(.*)")
_FRACTION = re.compile(r"[.,](\d+)")
_SAMPLES = re.compile(rb"(\d+) of (\d+) : ")


@cache
def format_of(pattern: str) -> Format:
    """The format whose records a regular expression matches, one or more a line.

    Raises:
        ReperfError: it is none, or lacks a group, or any text that all matches hold.
    """
    shown = f"'{printable(pattern)}'"
    try:
        tree = _parser.parse(pattern)
        flags, rest = _FLAGS.fullmatch(pattern).groups()  # type: ignore[union-attr]  # of any text
        # A line that is cut off may end within a number.
        line = re.compile(rf"{flags}(?:{rest})(?=[^\r\n]*[\r\n])".encode())
    except (re.error, OverflowError, RecursionError) as error:
        raise ReperfError(f"got {shown}: is no regular expression: {error}") from None
    named = set(tree.state.groupdict)
    if "iteration" not in named or len(named & _TIMES) != 1:
        raise ReperfError(
            f"got {shown}: names {', '.join(sorted(named)) or 'no group'}; allowed: groups "
            f"(?P<NAME>..) for iteration, for exactly one of {', '.join(sorted(_TIMES))}, and for any of "
            f"{', '.join(GROUPS[4:])}"
        )
    text = max(_texts(tree), key=len, default="")
    if not text:
        raise ReperfError(
            f"got {shown}: holds no text that is in every line it matches; allowed: one "
            "that does, such as 'step ', in the case in which it is printed"
        )
    found = Format(
        name=PATTERN,
        system=PATTERN,
        marker=text.encode(),
        pattern="",
        clock=ANY_CLOCK if "time" in named else None,
        remembering=lambda _own: partial(_read, named, set()),
        tells=_tells,
        counts=_counts,
        unit="samples/s",
    )
    found.line = _Patient(line)  # type: ignore[assignment]  # what scanning asks of a pattern
    return found


def _texts(tree: _parser.SubPattern) -> Iterator[str]:
    """The pieces of text that each match of a pattern holds."""
    piece = ""
    for kind, value in tree:
        if kind is _constants.LITERAL and not tree.state.flags & re.IGNORECASE:
            piece += chr(value)
            continue
        yield piece
        piece = ""
        if kind is _constants.SUBPATTERN and not value[1] & re.IGNORECASE:
            yield from _texts(value[3])
    yield piece


class _Patient:
    """A compiled pattern that gives up on a line for which it takes too long."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self.groupindex = pattern.groupindex

    def finditer(self, block: bytes, start: int, stop: int) -> Iterator[re.Match[bytes]]:
        """The matches in a part of a block.

        Raises:
            ReperfError: it took more than PATIENCE.
        """
        before = signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        try:
            found = list(self._pattern.finditer(block, start, stop))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return iter(found)


def _give_up(_signal: int, _frame: object) -> NoReturn:
    raise ReperfError(f"the pattern takes more than {PATIENCE:g} s for one line")


def _read(
    named: set[str], kinds: set[int], match: re.Match[bytes], rank: tuple[int, ...]
) -> Record | None:
    said = {name: (match[name] or b"").decode("ascii", "replace") for name in named & {*GROUPS}}
    if any(len(value) > _LONGEST for value in said.values()):
        return None
    try:
        counts = {name: int(said[name]) for name in _COUNTS if said.get(name)}
        rate = float(said["rate"]) if said.get("rate") else None
        written = next(said[name] for name in _TIMES if name in said)
        in_units = 0.001 if "duration_ms" in said else 1.0
        seconds, kind = of_any(written) if "time" in said else (float(written) * in_units, 0)
    except ValueError:
        return None
    if "iteration" not in counts or not isfinite(seconds):
        return None
    if kind not in (kinds or {kind}):  # seconds since the start are no date
        return None
    kinds.add(kind)
    if not all(0 <= count <= LARGEST_FACT for count in counts.values()):
        return None
    told = b"%d of %d : " % (counts["samples"], counts["iteration"]) if "samples" in counts else b""
    return Record(
        iteration=counts["iteration"],
        rank=(*rank, counts["rank"]) if "rank" in counts else rank,
        epoch=counts.get("epoch", 0),
        time=seconds if "time" in said else None,
        duration=None if "time" in said else seconds,
        span=counts.get("span", 1),
        tick=_tick(written) * in_units,
        rate=rate if rate is not None and isfinite(rate) else None,
        text=told + match[0],
    )


def _tick(written: str) -> float:
    """The step in which a number, or the seconds of a date, can change."""
    fraction = _FRACTION.search(written)
    _, _, exponent = written.lower().partition("e")
    power = int(exponent) if re.fullmatch(r"[-+]?\d{1,3}", exponent) else 0
    return 10.0 ** (power - (len(fraction[1]) if fraction else 0))


def _counts(record: bytes) -> dict[str, int]:
    said = _SAMPLES.match(record)
    return {"samples": int(said[1])} if said else {}


def _tells(record: bytes) -> Iterator[Fact]:
    """The batch, where samples are counted from the first iteration on."""
    said = _SAMPLES.match(record)
    samples, iterations = map(int, said.groups()) if said else (0, 0)
    if iterations and samples and samples % iterations == 0:
        yield "global_batch", samples // iterations
