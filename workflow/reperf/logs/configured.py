"""What decides a run, as facts: from a trainer's own words, a run record, a format or a suite.

All of them use the same names and words, so that a suite that asks for one thing and a log of another
contradict each other.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import PurePath
from typing import Any

from reperf.config import Parallel
from reperf.logs.events import is_count
from reperf.logs.facts import Fact, Facts, Name, Setting
from reperf.logs.format import Format
from reperf.systems import load_systems

NO_VARIANT = "none"
"""What a run says that is of no variant."""
DATA_PARALLEL = "data"
"""What one says whose devices share the training by samples alone."""
_FRAMEWORKS = {
    "composer": "torch",
    "deepspeed": "torch",
    "detectron2": "torch",
    "facebook-dlrm": "torch",
    "fleetx": "paddle",
    "hugectr": "hugectr",
    "huggingface": "torch",
    "levanter": "jax",
    "lightning": "torch",
    "litgpt": "torch",
    "maskrcnn-benchmark": "torch",
    "maxtext": "jax",
    "megatron": "torch",
    "mindspore": "mindspore",
    "nanochat": "torch",
    "nanogpt": "torch",
    "nanotron": "torch",
    "nemo": "torch",
    "olmo": "torch",
    "openmmlab": "torch",
    "pipedream": "torch",
    "tensorflow1": "tensorflow",
    "torchtitan": "torch",
}
"""What programs run on that are no systems of reperf; those that run on any are left out."""
_ACCUMULATION = re.compile(r"accumulation-(\d{1,5})")
"""What of a variant's name says how many batches an iteration is."""
_WORD = re.compile(r"[\w-]{1,40}", re.ASCII)
_WORDS: tuple[Name, ...] = ("workload", "precision", "device", "recipe")
_COUNTS: tuple[Name, ...] = (
    "batch_size",
    "accumulation",
    "devices_per_node",
    "iterations",
    "print_every",
)
_SAID_AS = {"paddlepaddle": "paddle"}
"""What a trainer calls a framework, where reperf calls it otherwise."""


def facts_of_configuration(said: Mapping[str, Any]) -> Iterator[Fact]:
    """What a trainer's flags say, or the fields of a run that have the same names.

    Args:
        said: a log's `configuration`, whose values may be anything.
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
    yield from _facts_of_switches(said)
    if said.get("load_only") is not None:
        yield "load_only", str(said["load_only"])


def _facts_of_parallel(said: Mapping[str, Any]) -> Iterator[Fact]:
    """How devices share the training, as a log's flags or a run's word say it."""
    if "parallel" in said:
        parallel = said["parallel"]
    elif "pipeline" in said:
        given = {name: said.get(name) for name in Parallel.model_fields}
        given["pipeline"] = given["pipeline"] or ()
        try:
            parallel = Parallel.model_validate(given) if any(given.values()) else None
        except ValueError:  # no trainer of this version says that
            yield "parallel", "unknown"
            return
    else:
        return
    yield "parallel", parallel.title if parallel else DATA_PARALLEL
    if parallel and parallel.pipeline:
        yield "replicas", parallel.pipeline[0]


def _facts_of_switches(said: Mapping[str, Any]) -> Iterator[Fact]:
    switches: tuple[Name, ...] = (*_switches(), "proof", "together")
    for name in switches:
        if name in said:
            yield name, _switched_to(said[name])
    if said.get("together") is True:
        yield "replicas", 1  # each rank is measured for itself


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
        yield "framework", _SAID_AS.get(name, name)


def facts_of_format(log_format: Format) -> Iterator[Fact]:
    """What a format says: whose logs these are; of a program's, what it runs on."""
    if log_format.system in load_systems():
        yield "system", log_format.system
    yield from _framework_of(log_format.system)


def facts_of_system(system: str | None, variant: str | None) -> Iterator[Fact]:
    """What the names of a system and its variant say; None says nothing."""
    if system is not None:
        yield "system", system
        yield from _framework_of(system)
    if variant is None:
        return
    yield "variant", variant
    names = variant.split("+")
    for accumulated in filter(None, map(_ACCUMULATION.fullmatch, names)):
        yield "accumulation", int(accumulated[1])
    names = [name for name in names if not _ACCUMULATION.fullmatch(name)]
    if variant == NO_VARIANT or not names:
        yield from _switched(())
    known = (one.variants for name, one in load_systems().items() if system in (None, name))
    flags = {
        tuple(sorted(flag for name in names for flag in variants[name].flags))
        for variants in known
        if set(names) <= set(variants)
    }
    if len(flags) == 1:
        yield from _switched(flags.pop())


def variant_said(facts: Facts, system: str) -> str | None:
    """The variants that a trainer's switches make, as an entry names them; None if all are off.

    Args:
        facts: what is known of the run.
        system: whose variant it is; of one that reperf does not know, the switches are its name.
    """
    values = {name: facts.get(name) for name in _switches()}
    on = {(name, value) for name, value in values.items() if value not in (None, False)}
    known = load_systems().get(system)
    made = {}
    for name, variant in known.variants.items() if known else ():
        flags = set(map(_switch, variant.flags))
        if flags and flags <= on:
            made[name] = flags
    if on and on == set().union(*made.values()):
        # What another one holds, such as async in geo, is none of its own.
        own = (
            name for name, flags in made.items() if not any(flags < one for one in made.values())
        )
        return "+".join(own)
    own = (name if value is True else f"{name}-{value}" for name, value in on)
    return "+".join(sorted(name.replace("_", "-") for name in own)) or None


def _switched(flags: tuple[str, ...]) -> Iterator[Fact]:
    """Which of the trainers' switches are on under a variant's flags, and which are off."""
    on = dict(map(_switch, flags))
    for name in _switches():
        yield name, on.get(name, False)


def _framework_of(system: str) -> Iterator[Fact]:
    known = load_systems().get(system)
    name = known.framework if known else _FRAMEWORKS.get(system)
    if name is not None:
        yield "framework", name


def _switch(flag: str) -> tuple[Setting, bool | str]:
    """A variant's flag as a switch and its value, such as that it is on."""
    name, _, value = flag.lstrip("-").partition("=")
    return Setting(name.replace("-", "_")), value or True


@cache
def _switches() -> tuple[Setting, ...]:
    """The switches of all systems' variants, by the names that trainers' flags have."""
    variants = [one for system in load_systems().values() for one in system.variants.values()]
    return tuple(sorted({_switch(flag)[0] for one in variants for flag in one.flags}))
