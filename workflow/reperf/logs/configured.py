"""What a trainer of ours says of its configuration, as facts.

A run record and a suite say the same by the same names and words, so that a suite that asks for one
thing and a log of another contradict each other.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from reperf.logs.events import is_count
from reperf.logs.facts import FACT_NAMES, Fact, Name, Setting

DATA_PARALLEL = "data"
"""What a run says whose devices share the training by samples alone."""
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
_CALLED = {"paddlepaddle": "paddle"}
"""What a trainer calls a framework, where reperf calls it otherwise."""


def facts_of_flags(flags: Mapping[str, Any]) -> Iterator[Fact]:
    """What the flags of a trainer say, as its log's `configuration` lists them.

    Args:
        flags: their values, which may be anything.
    """
    yield from facts_of_configuration(flags)
    for name, value in flags.items():
        if name not in _NO_SWITCHES:
            yield Setting(name), _switched_to(value)


def facts_of_configuration(said: Mapping[str, Any]) -> Iterator[Fact]:
    """What a trainer's flags say, or the fields of a run that have the same names.

    Args:
        said: their values, which may be anything.
    """
    yield from ((name, said[name]) for name in _WORDS if isinstance(said.get(name), str))
    framework, dot, _ = str(said.get("backend")).partition(".")
    if dot:
        yield "framework", framework
    shape = said.get("shape")
    for name, size in shape.items() if isinstance(shape, dict) else ():
        if is_count(size):
            yield Setting(name), size
    yield from ((name, said[name]) for name in _COUNTS if is_count(said.get(name)))
    yield from _facts_of_parallel(said)
    if isinstance(said.get("input"), str):
        yield "input", said["input"] if said["input"] in ("folder", "synthetic") else "records"
    if isinstance(said.get("data"), str) and (data_set := _data_set(PurePath(said["data"]))):
        yield "data_set", data_set
    if "together" in said:
        yield "together", _switched_to(said["together"])
    if said.get("together") is True:
        yield "replicas", 1  # each rank is measured for itself
    if said.get("load_only") is not None:
        yield "load_only", str(said["load_only"])


def _facts_of_parallel(said: Mapping[str, Any]) -> Iterator[Fact]:
    """How devices share the training, in the words of `reperf.config.Parallel.title`."""
    if "pipeline" not in said:
        return
    stages = said["pipeline"] if isinstance(said["pipeline"], list | tuple) else ()
    words = [f"stages {' + '.join(map(str, stages))}"] if stages else []
    words += [f"{name.replace('_', '-')} {said[name]}" for name in _PARALLEL if said.get(name)]
    yield "parallel", ", ".join(words) or DATA_PARALLEL
    if stages and is_count(stages[0]):
        yield "replicas", stages[0]


def _switched_to(value: object) -> bool | str:
    """Whether a switch is on; the word if it is set to one, such as how often it acts."""
    if value is True or not value:
        return bool(value)
    word = str(value) if isinstance(value, int | str) else ""
    return word if _WORD.fullmatch(word) else "unknown"


def _data_set(folder: PurePath) -> str | None:
    """The name of a data set that lies where reperf puts it."""
    return folder.parts[-2] if folder.parts[-3:-2] == ("data",) else None


def facts_of_framework(said: str) -> Iterator[Fact]:
    """What a trainer's framework says, such as "torch 2.13.0".

    Args:
        said: its name and version.
    """
    if name := said.partition(" ")[0]:
        yield "framework", _CALLED.get(name, name)
