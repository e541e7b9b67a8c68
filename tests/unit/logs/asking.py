"""How tests ask for a measurement."""

import io
from pathlib import Path

import pytest
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


def check(found: Measurement, reason: str = "", **expected: object) -> None:
    """Check what a log gave.

    Args:
        reason: how its refusal begins, or, behind "..", what it holds; "": it gives a number.
        expected: attributes of the measurement. Numbers with a point are compared to six digits.
    """
    if reason.startswith(".."):
        assert reason[2:] in found.reason
    else:
        assert found.reason.startswith(reason), found.reason
    assert bool(reason) == bool(found.reason), found.reason
    assert found.status == ("refused" if reason else "ok")
    for name, value in expected.items():
        value = pytest.approx(value) if isinstance(value, float) else value  # noqa: PLW2901
        assert getattr(found, name) == value, name


def case(
    name: str,
    log: list[str] | bytes,
    reason: str = "",
    *,
    wide: bool = False,
    ends: tuple[int, int] | None = None,
    facts: tuple[Fact, ...] = (),
    log_format: str | None = None,
    **expected: object,
) -> object:
    """A row of CASES: a log, how it is measured, and what it gives; see `check`."""
    how = {"widest": wide, "ends": ends, "facts": facts, "log_format": log_format}
    return pytest.param(log, how, reason, expected, id=name)


def cases(*rows: object) -> pytest.MarkDecorator:
    """Rows for a test that takes `log`, `how`, `reason` and `expected`."""
    return pytest.mark.parametrize(("log", "how", "reason", "expected"), rows)
