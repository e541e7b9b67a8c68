"""What values of a report may be: topologies, batch sizes, workloads, systems, and their limits."""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from reperf.suggestions import did_you_mean
from reperf.systems import load_systems
from reperf.systems.workloads import load_workloads
from reperf.values import LONGEST_NAME, TOPOLOGY, one_line
from reperf.yaml_files import read_yaml_file

Named = TypeVar("Named", bound=Any)


LONGEST_TEXT = 1000
"""A run's whole launch goes into one argument of a command, which may have 128 kB."""
MOST_RUNS = 100_000  # ten thousand are planned in ten seconds
MOST_NODES, MOST_DEVICES = 99_999, 9_999  # the most that a topology can name
MOST_ITERATIONS = 10_000_000
MOST_ACCUMULATED = 10_000
MOST_SAMPLES = 10_000_000  # per device and iteration
MOST_BYTES = 10**15  # more than any machine has
LARGEST: Literal["largest"] = "largest"  # the batch size that asks for the largest one that trains
MONTH_IN_SECONDS = 30 * 24 * 3600


def _number_or_largest(size: Any) -> Any:  # noqa: ANN401 - raw YAML
    if size == LARGEST or (type(size) is int and 1 <= size <= MOST_SAMPLES):
        return size
    allowed = f"a whole number, 1 to {MOST_SAMPLES:,}, or {LARGEST}"
    raise ValueError(f"allowed: {allowed}{did_you_mean(size, [LARGEST])}")


def distinct(items: tuple[Named, ...]) -> tuple[Named, ...]:
    """The items; ValueError where a word, `id` or name appears twice."""
    names = (str(getattr(item, "id", None) or getattr(item, "name", item)) for item in items)
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"{name} appears twice; allowed: each once")
    return items


def or_text(key: str, model: Any) -> BeforeValidator:  # noqa: ANN401 - a class
    """Let a text stand for a mapping with nothing but this key."""
    return BeforeValidator(
        lambda value: {key: value} if isinstance(value, str) else value,
        json_schema_input_type=str | model,
    )


Topology = Annotated[str, Field(pattern=TOPOLOGY)]
Whole = Annotated[int, Field(ge=0, le=10**15)]  # more than any run has, and a table can hold it
Label = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(one_line)]
Text = Annotated[str, Field(max_length=LONGEST_TEXT), AfterValidator(one_line)]
BatchSize = Annotated[
    Annotated[int, Field(ge=1, le=MOST_SAMPLES)] | Literal["largest"],
    BeforeValidator(_number_or_largest),
]
Topologies = Annotated[tuple[Topology, ...], Field(min_length=1), AfterValidator(distinct)]
_WORKLOADS, _SYSTEMS = tuple(load_workloads()), tuple(load_systems())
Workload = Literal[_WORKLOADS]  # type: ignore[valid-type]  # their files say it
SystemId = Literal[_SYSTEMS]  # type: ignore[valid-type]  # their folders say it


@cache
def _examples() -> dict[str, list[Any]]:
    return read_yaml_file(Path(__file__).with_name("examples.yaml"))


def with_examples(schema: dict[str, Any], model: type[Any]) -> None:
    """Add its examples to the JSON Schema of a model."""
    schema["examples"] = _examples()[model.__name__]


def topology_shape(topology: str) -> tuple[int, int]:
    """Split a topology such as "2n8g" into (number of nodes, devices per node)."""
    nodes, _, devices = topology.removesuffix("g").partition("n")
    return int(nodes), int(devices)
