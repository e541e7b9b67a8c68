"""What a trainer of ours says of its configuration, as facts.

A run record and a suite use the same names and words, so that a log contradicts a suite that asks for
something else.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from reperf.logs.events import is_count
from reperf.logs.facts import FACT_NAMES, Fact, Name, Setting

DATA_PARALLEL = "data"  # what a run says whose devices share the training by samples alone
_WORD = re.compile(r"[\w-]{1,40}", re.ASCII)
_WORDS: tuple[Name, ...] = ("workload", "precision", "device", "recipe")
_COUNTS: tuple[Name, ...] = (
    "batch_size",
    "accumulation",
    "devices_per_node",
    "iterations",
    "print_every",
)
_PARALLEL = ("micro_batches", "tensor", "shard")
_NO_SWITCHES = {
    *(set(FACT_NAMES) - {"proof", "together"}),
    *_PARALLEL,
    *("backend", "batches", "data", "model", "part", "pipeline", "shape"),
    *("loader_threads", "memory_limit", "seed", "threads"),
}
"""The flags that are no switches, as those of a variant are."""
_FACTS = {"own_time": "together"}
"""Flags whose facts are called otherwise, as the flags themselves once were."""
_CALLED = {"paddlepaddle": "paddle"}
"""What a trainer calls a framework, where reperf calls it otherwise."""


def facts_of_flags(flags: Mapping[str, Any]) -> Iterator[Fact]:
    """The facts in the flags of a trainer, as its log's `configuration` lists them."""
    flags = {fact_of_flag(name): value for name, value in flags.items()}
    yield from facts_of_configuration(flags)
    for name, value in flags.items():
        if name not in _NO_SWITCHES:
            yield Setting(name), _switched_to(value)


def fact_of_flag(name: str) -> str:
    """What a trainer's flag is called among facts."""
    return _FACTS.get(name, name)


def facts_of_configuration(values: Mapping[str, Any]) -> Iterator[Fact]:
    """The facts in a trainer's flags, or in the fields of a run that have the same names."""
    yield from ((name, values[name]) for name in _WORDS if isinstance(values.get(name), str))
    framework, dot, _ = str(values.get("backend")).partition(".")
    if dot:
        yield "framework", framework
    shape = values.get("shape")
    for name, size in shape.items() if isinstance(shape, dict) else ():
        if is_count(size):
            yield Setting(name), size
    yield from ((name, values[name]) for name in _COUNTS if is_count(values.get(name)))
    yield from _facts_of_parallel(values)
    if isinstance(values.get("input"), str):
        yield "input", values["input"] if values["input"] in ("folder", "synthetic") else "records"
    folder = PurePath(str(values.get("data"))).parts
    if folder[-3:-2] == ("data",):  # where reperf puts data sets
        yield "data_set", folder[-2]
    if "together" in values:
        yield "together", _switched_to(values["together"])
    if values.get("together") is True:
        yield "replicas", 1  # each rank is measured for itself


def _facts_of_parallel(values: Mapping[str, Any]) -> Iterator[Fact]:
    """How devices share the training, in the words of `reperf.config.Parallel.title`."""
    if "pipeline" not in values:
        return
    stages = values["pipeline"] if isinstance(values["pipeline"], list | tuple) else ()
    words = [f"stages {' + '.join(map(str, stages))}"] if stages else []
    words += [f"{name.replace('_', '-')} {values[name]}" for name in _PARALLEL if values.get(name)]
    yield "parallel", ", ".join(words) or DATA_PARALLEL
    if stages and is_count(stages[0]):
        yield "replicas", stages[0]
    if is_count(values.get("tensor")):
        yield "tensor", values["tensor"]


def _switched_to(value: object) -> bool | str:
    """Whether a switch is on; the word if it is set to one, such as how often it acts."""
    if value is True or not value:
        return bool(value)
    word = str(value) if isinstance(value, int | str) else ""
    return word if _WORD.fullmatch(word) else "unknown"


def facts_of_framework(version: str) -> Iterator[Fact]:
    """The framework of a trainer, from its name and version, such as "torch 2.13.0"."""
    if name := version.partition(" ")[0]:
        yield "framework", _CALLED.get(name, name)
