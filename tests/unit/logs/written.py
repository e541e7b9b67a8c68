"""Logs written in the exact form of each format, for tests.

A template under tests/data/logs/written is one iteration of a log, with what stands before and
behind; between < and > stands what varies, by _names. It follows the sources that the format's
module names; docs/log-formats.md shows its lines.
"""

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import CodeType

import yaml

TEMPLATES = Path(__file__).resolve().parents[2] / "data" / "logs" / "written"
START = datetime(2020, 9, 15, 14, 29, 13, tzinfo=UTC)
STEP = 0.25
SLOW_STEP = 4.0  # seconds an iteration takes, and where times are printed in whole seconds
NODES, DEVICES, BATCH = 2, 2, 8
WORLD = NODES * DEVICES
GLOBAL_BATCH = WORLD * BATCH
RATE = GLOBAL_BATCH / STEP


def _names(i: int, t: float, rate: float) -> dict[str, object]:
    """What the line of an iteration may say, by the names in templates.

    Args:
        i: the iteration, as printed.
        t: the seconds since START at its end.
        rate: the speed of all devices, in samples/s.
    """
    took, at, unix = GLOBAL_BATCH / rate, START + timedelta(seconds=t), START.timestamp() + t
    hours, rest = divmod(int(t), 3600)
    elapsed = (f"{hours}:" if hours else "") + f"{rest // 60:02d}:{rest % 60:02d}"
    return {
        "i": i,
        "t": t,
        "rate": rate,
        "took": took,  # seconds
        "ms": 1000 * took,
        "so_far": max(t - 3, 0.001),  # seconds since the first iteration began
        "samples": i * GLOBAL_BATCH,
        "loss": f"{7 - t / 1e5:.6f}",  # tells the runs in one log apart
        "at": at,
        "millis": f"{at.microsecond // 1000:03d}",
        "unix": unix,
        "time_ms": int(START.timestamp() * 1000 + t * 1000),
        "elapsed": elapsed,
        "bar": f"{i // 10:3d}%|#         | {i}/1000 [{elapsed}<1:00:00,  4.00s/it",  # as of tqdm
    }


_FIELD = re.compile(r"<([a-z][^>]*|\d+ [^>]*)>")


@dataclass(frozen=True)
class Style:
    """How one format writes, about two nodes of two devices with a batch of 8 each."""

    template: tuple[str, ...]
    every: int = 1  # iterations between two lines
    first: int = 1  # the first iteration that is printed
    # what the log does not say, for the command line
    facts: tuple[tuple[str, int], ...] = ()
    has_time: bool = True
    step: float = STEP  # seconds an iteration takes
    says_batch: bool = False  # whether a log that can be read says its global batch
    # the seconds of which a written time is a multiple; None: any time is written
    unit: float | None = None

    @classmethod
    def of(cls, name: str) -> "Style":
        """That of a format, by its template, whose first line says what is not as usual."""
        text = (TEMPLATES / f"{name}.log").read_text(encoding="utf-8")
        options, *template = text.removeprefix("## ").splitlines()
        said = yaml.safe_load(options)
        return cls(tuple(template), **said | {"facts": tuple(said.get("facts", {}).items())})

    @cached_property
    def _parts(self) -> tuple[list[str], list[str], list[str]]:
        """The lines before those of an iteration, these, and the lines behind."""
        varying = [number for number, line in enumerate(self.template) if _FIELD.search(line)]
        start, stop = varying[0], varying[-1] + 1
        return [*self.template[:start]], [*self.template[start:stop]], [*self.template[stop:]]

    @cached_property
    def _code(self) -> CodeType:
        """The template of an iteration as an f-string."""
        pieces = _FIELD.split("\n".join(self._parts[1]))
        pieces[::2] = [text.replace("{", "{{").replace("}", "}}") for text in pieces[::2]]
        pieces[1::2] = [f"{{{field}}}" for field in pieces[1::2]]
        return compile("f" + repr("".join(pieces)), "template", "eval")

    @property
    def head(self) -> list[str]:
        """What stands before the first iteration."""
        return self._parts[0]

    @property
    def tail(self) -> list[str]:
        """What stands behind the last one."""
        return self._parts[2]

    def line(self, iteration: int, seconds: float, rate: float) -> str:
        """What is printed of an iteration that ends so many seconds after START, at a speed."""
        return eval(self._code, {}, _names(iteration, seconds, rate))


STYLES = {path.stem: Style.of(path.stem) for path in sorted(TEMPLATES.glob("*.log"))}
STYLES["fleetx-bert"] = STYLES["paddle1-bert"]
SAME_LINES = ("fleetx-bert", "paddle1-bert")  # formats that only the user can tell apart
TIMED = sorted(name for name, style in STYLES.items() if style.has_time)
"""Formats whose lines tell times."""


def dll(seconds: float) -> str:
    """What stands before each line of NVIDIA's dllogger."""
    return f"DLL {START + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S.%f} -"


def rate(name: str) -> float:
    """The speed of all devices in a written log, in samples/s."""
    return GLOBAL_BATCH / STYLES[name].step


def iterations(name: str, last: int = 200) -> range:
    """The iterations that a log of a format prints."""
    return range(STYLES[name].first, last + 1, STYLES[name].every)


def written(
    name: str, last: int = 200, start: float = 0.0, lost: tuple[int, ...] = ()
) -> list[str]:
    """A whole log, without the line ends, that begins so many seconds after START.

    Args:
        lost: the iterations whose lines are not there.
    """
    style, numbers = STYLES[name], (i for i in iterations(name, last) if i not in lost)
    lines = printed(name, ((i, start + 3 + i * style.step, rate(name)) for i in numbers))
    return [*style.head, "some other line", *lines, *style.tail]


def printed(name: str, steps: Iterable[tuple[int, float, float]]) -> list[str]:
    """The lines of some iterations: their numbers, the seconds at their ends, and their speeds."""
    return "\n".join(STYLES[name].line(*step) for step in steps).split("\n")


def uneven_steps(name: str, last: int = 200, digits: int = 3) -> Iterator[tuple[int, float, float]]:
    """The printed iterations of a log each of whose steps takes another time.

    Args:
        name: of the format.
        last: iteration that is printed last.
        digits: decimals of the seconds between two lines. All formats print two, or none.

    Yields:
        The iteration, the seconds after START at its end, and those since the line before.
    """
    style, chance, seconds = STYLES[name], random.Random(1), 3.0
    for iteration in iterations(name, last):
        took = style.every * style.step * (0.8 + 0.4 * chance.random())
        took = round(took, 0 if style.step == SLOW_STEP else digits)
        took = round(took / style.unit) * style.unit if style.unit else took
        seconds += took
        yield iteration, seconds, took


def uneven(name: str, last: int = 200, digits: int = 3) -> list[str]:
    """That log, without the line ends."""
    style = STYLES[name]
    lines = [
        style.line(iteration, seconds, GLOBAL_BATCH * style.every / took)
        for iteration, seconds, took in uneven_steps(name, last, digits)
    ]
    return [*style.head, "some other line", *lines, *style.tail]
