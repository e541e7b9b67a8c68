"""How tests ask for a measurement."""

import io
from pathlib import Path

from reperf.logs.facts import Fact
from reperf.logs.formats import formats
from reperf.measuring.measure import Measurement, Method, measure_log

from tests.unit.logs.written import STYLES

REAL = Path(__file__).resolve().parents[2] / "data" / "logs"


def encode(lines: list[str]) -> bytes:
    """A log of these lines."""
    return "".join(f"{line}\n" for line in lines).encode()


def measure(
    log: list[str] | bytes,
    *,
    method: str = "window",
    ends: tuple[int, int] | None = None,
    log_format: str | None = None,
    facts: tuple[Fact, ...] = (),
    unit: str | None = None,
    widest: bool = False,
) -> list[Measurement]:
    """All measurements of a log."""
    chosen = formats()[log_format] if log_format else None
    stream = io.BytesIO(log if isinstance(log, bytes) else encode(log))
    asked = Method(method, unit=unit, ends=ends, widest=widest)
    told = [("the command line", facts)]
    return [one for one, *_ in measure_log("log", stream, asked, chosen, told)]


def measure_one(log: list[str] | bytes, **how: object) -> Measurement:
    """The only measurement of a log."""
    [measured] = measure(log, **how)
    return measured


def runs_written(name: str, log: list[str] | bytes, **how: object) -> list[Measurement]:
    """All measurements of a written log, whose format is given and whose facts are known."""
    return measure(log, **{"log_format": name, "facts": STYLES[name].facts, **how})


def measure_written(name: str, log: list[str] | bytes, **how: object) -> Measurement:
    """The only measurement of a written log."""
    [measured] = runs_written(name, log, **how)
    return measured
