"""A format that a user describes: a regular expression of one line, for logs that nobody knows."""

import re
from functools import cache, partial
from math import isfinite

from reperf.errors import ReperfError
from reperf.logs.clock import ANY_CLOCK, of_any, tick
from reperf.logs.facts import LARGEST_FACT
from reperf.logs.format import Format, Record, literals_in
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
PATTERN = "pattern"  # the name of such a format
UNMATCHED = "no line matches the pattern, or none in which its groups hold numbers and times that can be read"
_COUNTS = ("iteration", "samples", "span", "epoch", "rank")
_TIMES = {"time", "duration", "duration_ms"}
_LONGEST = 40
_FLAGS = re.compile(r"(?s)((?:\(\?[a-zA-Z]+\))*)(.*)")


@cache
def format_of(pattern: str) -> Format:
    """The format whose records a regular expression matches, one or more a line.

    Raises:
        ReperfError: it is none, or lacks a group, or any text that all matches hold.
    """
    shown = f"'{printable(pattern)}'"
    try:
        whole = re.compile(pattern)
        flags, rest = _FLAGS.fullmatch(pattern).groups()  # type: ignore[union-attr]  # of any text
        # A line that is cut off may end within a number.
        line = re.compile(rf"{flags}(?:{rest})(?=[^\r\n]*[\r\n])".encode())
    except (re.error, OverflowError, RecursionError) as error:
        raise ReperfError(f"got {shown}: is no regular expression: {error}") from None
    named = set(whole.groupindex)
    if "iteration" not in named or len(named & _TIMES) != 1:
        raise ReperfError(
            f"got {shown}: names {', '.join(sorted(named)) or 'no group'}; allowed: groups "
            f"(?P<NAME>..) for iteration, for exactly one of {', '.join(sorted(_TIMES))}, and for any of "
            f"{', '.join(GROUPS[4:])}"
        )
    texts = literals_in(pattern)
    if len(texts) > 1 or not texts[0] or whole.flags & re.IGNORECASE:
        raise ReperfError(
            f"got {shown}: holds no text that is in every line it matches; allowed: one "
            "that does, outside of groups, such as 'step ', in the case in which it is printed"
        )
    found = Format(
        name=PATTERN,
        marker=texts[0],
        pattern="",
        clock=ANY_CLOCK if "time" in named else None,
        remembering=lambda _own: partial(_read, named, set()),
        unit="samples/s",
    )
    found.line = line
    return found


def _read(
    named: set[str], kinds: set[int], match: re.Match[bytes], rank: tuple[int, ...]
) -> Record | None:
    groups = {name: (match[name] or b"").decode("ascii", "replace") for name in named & {*GROUPS}}
    if any(len(value) > _LONGEST for value in groups.values()):
        return None
    try:
        counts = {name: int(groups[name]) for name in _COUNTS if groups.get(name)}
        rate = float(groups["rate"]) if groups.get("rate") else None
        written = next(groups[name] for name in _TIMES if name in groups)
        in_units = 0.001 if "duration_ms" in groups else 1.0
        seconds, kind = of_any(written) if "time" in groups else (float(written) * in_units, 0)
    except ValueError:
        return None
    if "iteration" not in counts or not isfinite(seconds):
        return None
    if kind not in (kinds or {kind}):  # seconds since the start are no date
        return None
    kinds.add(kind)
    if not all(0 <= count <= LARGEST_FACT for count in counts.values()):
        return None
    samples, iteration = counts.get("samples"), counts["iteration"]
    # Where samples are counted from the first iteration on, they tell the batch.
    batch = samples // iteration if samples and iteration and samples % iteration == 0 else None
    return Record(
        iteration=iteration,
        rank=(*rank, counts["rank"]) if "rank" in counts else rank,
        epoch=counts.get("epoch", 0),
        time=seconds if "time" in groups else None,
        duration=None if "time" in groups else seconds,
        span=counts.get("span", 1),
        tick=tick(written) * in_units,
        rate=rate if rate is not None and isfinite(rate) else None,
        text=match[0],
        facts=(("global_batch", batch),) if batch else (),
        counts=(("samples", samples),) if samples is not None else (),
    )
