"""What keys and values may be: names, lines, paths, numbers, topologies, and their limits."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    Strict,
    WithJsonSchema,
)

from reperf.faults import Model, YesOrNo  # noqa: F401 - all values here go into one
from reperf.nearest import did_you_mean, of_topology
from reperf.systems import load_systems, load_workloads

Named = TypeVar("Named", bound=Any)

NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")
TOPOLOGY = re.compile(r"([1-9][0-9]{0,4})n([1-9][0-9]{0,3})g")

LONGEST_NAME = 100
"""Two names and a suffix make one file name, which may have 255 bytes."""
LONGEST_TEXT = 1000
"""A run's whole launch goes into one argument of a command, which may have 128 kB."""
MOST_TEXTS = 50
LONGEST_PATH = 4095
LONGEST_STEP = 255
"""The most bytes that Linux allows in a path, and in one name of it."""
MOST_RUNS = 100_000
"""Ten thousand are planned in ten seconds."""
MOST_SUITES = MOST_SOURCES = 1000
MOST_ENTRIES = 200
"""Several times the systems with all of their variants."""
MOST_NODES, MOST_DEVICES = 99_999, 9_999
"""The most that a topology can name."""
MOST_PARTS = 100_000
"""Their names have five digits."""
MOST_PROCESSES = 1024
"""Processes or threads that one machine starts."""
MOST_ITERATIONS = 10_000_000
MOST_ACCUMULATED = 10_000
MOST_SAMPLES = 10_000_000
"""Per device and iteration."""
MOST_BYTES = 10**15
"""More than any machine has."""
LARGEST: Literal["largest"] = "largest"
"""The batch size that asks for the largest one that trains."""
LARGEST_SEED = 2_000_000_000
"""Frameworks take 31 bits, and repeats and ranks are added to it."""
MONTH_IN_SECONDS = 30 * 24 * 3600

# Control characters, surrogates, direction marks, line and paragraph ends.
_UNPRINTED = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _like(
    pattern: re.Pattern, allowed: str, meant: Callable[[str], str] = lambda _: ""
) -> BeforeValidator:
    def check(text: Any) -> str:  # noqa: ANN401 - raw YAML
        if not isinstance(text, str) or not pattern.fullmatch(text):
            raise ValueError(f"allowed: {allowed}{meant(str(text))}")
        return text

    return BeforeValidator(check)


def _one_of(known: Callable[[], Collection[str]]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in known():
            raise ValueError(f"allowed: {', '.join(known())}{did_you_mean(name, known())}")
        return name

    return AfterValidator(check)


def _one_line(text: str) -> str:
    if not text.strip() or any(unicodedata.category(one) in _UNPRINTED for one in text):
        raise ValueError("allowed: one line of printed characters")
    return text


FILLED_IN = re.compile(r"[{}]|<\w+>")
"""What Snakemake takes for a wildcard, or for one of its path variables, in a path."""
NOT_FILLED_IN = "allowed: names without { and }, and without a word between < and >"


def _path(path: Path) -> Path:
    _one_line(str(path))
    if FILLED_IN.search(str(path)):
        raise ValueError(NOT_FILLED_IN)
    if str(path).startswith(("~/", "$")):
        raise ValueError("allowed: the whole path, for ~ and $ stand for nothing here")
    parts = [len(part.encode()) for part in path.parts]
    if max(parts, default=0) > LONGEST_STEP or len(str(path).encode()) > LONGEST_PATH:
        raise ValueError(
            f"allowed: up to {LONGEST_PATH} bytes, and {LONGEST_STEP} between two slashes"
        )
    return path


def _number_or_largest(size: Any) -> Any:  # noqa: ANN401 - raw YAML
    if size == LARGEST or (type(size) is int and 1 <= size <= MOST_SAMPLES):
        return size
    meant = did_you_mean(size, [LARGEST])
    raise ValueError(f"allowed: a whole number, 1 to {MOST_SAMPLES:,}, or {LARGEST}{meant}")


def distinct(items: tuple[Named, ...]) -> tuple[Named, ...]:
    """The items themselves, words or what has an `id` or a name, if none appears twice.

    Raises:
        ValueError: names the first that does.
    """
    names = (one if isinstance(one, str) else getattr(one, "id", None) or one.name for one in items)
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"{name} appears twice; allowed: each once")
    return items


Topology = Annotated[
    str,
    _like(
        TOPOLOGY,
        f"<nodes>n<devices per node>g, such as 2n8g, up to {MOST_NODES}n{MOST_DEVICES}g",
        of_topology,
    ),
    WithJsonSchema({"type": "string", "pattern": f"^{TOPOLOGY.pattern}$"}),
]
Name = Annotated[
    str,
    Field(max_length=LONGEST_NAME),
    _like(NAME, "lowercase letters, digits, - and ., a letter or digit first"),
    WithJsonSchema({"type": "string", "pattern": f"^{NAME.pattern}$"}),
]
Whole = Annotated[int, Field(ge=0, le=10**15)]  # more than any run has, and a table can hold it
Label = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(_one_line)]
Text = Annotated[str, Field(max_length=LONGEST_TEXT), AfterValidator(_one_line)]
Texts = Annotated[tuple[Text, ...], Field(max_length=MOST_TEXTS)]
PlainPath = Annotated[Path, AfterValidator(_path)]
Number = Annotated[int, Strict()]  # YAML's `yes` is none, nor is "3"
BatchSize = Annotated[
    Annotated[int, Field(ge=1, le=MOST_SAMPLES)] | Literal["largest"],
    BeforeValidator(_number_or_largest),
]
Topologies = Annotated[
    tuple[Topology, ...], Field(min_length=1, max_length=1000), AfterValidator(distinct)
]
Workload = Annotated[
    str,
    _one_of(load_workloads),
    WithJsonSchema({"type": "string", "enum": list(load_workloads())}),
]
SystemId = Annotated[str, _one_of(load_systems)]


def topology_shape(topology: str) -> tuple[int, int]:
    """Split a topology such as "2n8g" into (number of nodes, devices per node)."""
    nodes, _, devices = topology.removesuffix("g").partition("n")
    return int(nodes), int(devices)
