"""Lines for people: times as you would say them, and text on a single line."""

from reperf.text import printable

LONGEST = 1000
"""Characters of a line; the log holds longer ones."""


def duration(seconds: float) -> str:
    """A time as you would say it: "3.2 s", "45 s", "12 min", "1 h 20 min"."""
    if round(seconds, 1) < 10:
        return f"{seconds:.1f} s"
    if round(seconds) < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")


def about(seconds: float) -> str:
    """A time that is known no better than to the second."""
    return duration(seconds) if seconds >= 10 else f"{max(1, round(seconds))} s"


def one_line(text: str) -> str:
    """The text as one printable line, cut if it is longer than LONGEST."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} .."
