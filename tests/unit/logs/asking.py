"""How tests ask for a measurement."""

import io
from pathlib import Path

from reperf.logs.facts import Fact
from reperf.logs.formats import formats
from reperf.measuring.measure import Measurement, Method, measure_log

from tests.unit.logs.written import STYLES

REAL = Path(__file__).resolve().parents[2] / "data" / "logs"


def measure(
    content: bytes,
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
    known = [("the command line", facts)]
    stream = io.BytesIO(content)
    asked = Method(method, unit=unit, ends=ends, widest=widest)
    return [one for one, *_ in measure_log("log", stream, asked, chosen, known)]


def measure_one(lines: list[str] | bytes, **how: object) -> Measurement:
    """The only measurement of a log."""
    content = lines if isinstance(lines, bytes) else "".join(f"{x}\n" for x in lines).encode()
    [measured] = measure(content, **how)
    return measured


def measure_written(name: str, lines: list[str] | bytes, **how: object) -> Measurement:
    """The only measurement of a written log, whose format is given and whose facts are known."""
    return measure_one(lines, **{"log_format": name, "facts": STYLES[name].facts, **how})
