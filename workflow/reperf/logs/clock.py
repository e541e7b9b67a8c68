"""The clocks of the time stamps in logs."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

DAY = 86400.0
_DECIMALS, _EXPONENT = re.compile(r"[.,](\d+)"), re.compile(r"[-+]?\d{1,2}")


@dataclass(frozen=True)
class Clock:
    """How a time stamp is written, and read."""

    pattern: str  # regular expression of a stamp
    # turns a stamp into seconds since some fixed time; ValueError if it is no time
    seconds: Callable[[str], float]
    # decimals of a second to which differences are rounded; None: not rounded
    digits: int | None = 6
    period: float | None = None  # seconds after which the clock starts again; None if it never does
    # what docs/log-formats.md calls such times
    title: str = field(default="time stamps", compare=False)

    def between(self, start: float, stop: float) -> float:
        """Seconds from one time to another, without the noise of binary fractions."""
        return stop - start if self.digits is None else round(stop - start, self.digits)


def _of_date(stamp: str) -> float:
    return datetime.fromisoformat(f"{stamp.replace('/', '-')}+00:00").timestamp()


def _of_year(stamp: str) -> float:
    # Any leap year will do: across New Year, time steps back, and the window is refused.
    return datetime.strptime(f"2000/{stamp}", "%Y/%m/%d %H:%M:%S").replace(tzinfo=UTC).timestamp()


def _of_day(stamp: str) -> float:
    hours, minutes, seconds = stamp.replace(",", ".").split(":")
    if int(hours) > 23 or int(minutes) > 59 or float(seconds) >= 61:
        raise ValueError(f"no time of day: {stamp}")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _of_bar(stamp: str) -> float:
    seconds = 0
    for part in stamp.split(":"):
        seconds = 60 * seconds + int(part)
    return float(seconds)


def _of_iso(stamp: str) -> float:
    moment = datetime.fromisoformat(stamp.replace("/", "-").replace(",", "."))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def of_any(stamp: str) -> tuple[float, int]:
    """The seconds that a stamp of any kind tells, and which kind that is.

    Raises:
        ValueError: it is none.
    """
    reads: tuple[Callable[[str], float], ...] = (float, _of_iso, _of_year, _of_day)
    for kind, read in enumerate(reads):
        try:
            return read(stamp), kind
        except ValueError:
            continue
    raise ValueError(f"no time: {stamp}")


def tick(stamp: str) -> float:
    """The step in which a written number, or the seconds of a date, can change: 0.001 for "12.345"."""
    mantissa, _, exponent = stamp.lower().partition("e")
    fraction = _DECIMALS.search(mantissa)
    power = int(exponent) if _EXPONENT.fullmatch(exponent) else 0
    return 10.0 ** (power - (len(fraction[1]) if fraction else 0))


FRACTION = r"(?:[.,]\d{1,6})?"
UNIX = Clock(r"\d{9,11}(?:\.\d{1,9})?", float, digits=None)
DATE = Clock(rf"\d{{4}}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d{FRACTION}", _of_date)
_WHOLE = "time stamps, in whole seconds"
YEARLESS = Clock(r"\d\d/\d\d \d\d:\d\d:\d\d", _of_year, title=_WHOLE)
TIME_OF_DAY = Clock(rf"\d\d:\d\d:\d\d{FRACTION}", _of_day, period=DAY)
ELAPSED = Clock(
    r"(?:\d{1,6}:)?\d\d:\d\d", _of_bar, digits=None, title="elapsed time, in whole seconds"
)
"""As a progress bar shows it."""
MILLISECONDS = Clock("", float, digits=3)  # of numbers, not of text
TRAINED = replace(MILLISECONDS, title="the time of training so far")
"""Of numbers that leave out what is no training."""
MONOTONIC = Clock("", float, digits=None, title="a clock that cannot jump")
ANY_CLOCK = Clock("", lambda stamp: of_any(stamp)[0])
"""Of whatever a user's pattern finds: seconds, a date, a time of day. At midnight, that steps back."""
