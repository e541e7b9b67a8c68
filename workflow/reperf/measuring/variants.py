"""What the names of systems, variants and formats say of a run, as facts."""

import re
from collections.abc import Iterator
from functools import cache

from reperf.logs.configured import fact_of_flag
from reperf.logs.facts import Fact, Facts, Setting
from reperf.logs.format import Format
from reperf.logs.formats import PROGRAMS
from reperf.systems import load_systems

NO_VARIANT = "none"  # what a run says that is of no variant
_ACCUMULATION = re.compile(r"accumulation-(\d{1,5})")
"""What of a variant's name says how many batches an iteration is."""


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
    flags = {
        tuple(sorted(flag for name in names for flag in known.variants[name].flags))
        for known_system, known in load_systems().items()
        if system in (None, known_system) and set(names) <= set(known.variants)
    }
    if len(flags) == 1:
        yield from _switched(flags.pop())


def variant_of_switches(facts: Facts, system: str) -> str | None:
    """The variants that a trainer's switches make, as an entry names them; None if all are off.

    For a system that reperf does not know, the switches are the name.
    """
    values = {name: facts.get(name) for name in _switches()}
    on = {(name, value) for name, value in values.items() if value not in (None, False)}
    known = load_systems().get(system)
    flags_of = {}
    for name, variant in known.variants.items() if known else ():
        flags = set(map(_switch, variant.flags))
        if flags and flags <= on:
            flags_of[name] = flags
    if on and on == set().union(*flags_of.values()):
        # A variant whose switches are among another's, such as async in geo, is not named.
        return "+".join(
            name
            for name, flags in flags_of.items()
            if not any(flags < others for others in flags_of.values())
        )
    named = (name if value is True else f"{name}-{value}" for name, value in on)
    return "+".join(sorted(name.replace("_", "-") for name in named)) or None


def _switched(flags: tuple[str, ...]) -> Iterator[Fact]:
    """Which of the trainers' switches are on under a variant's flags, and which are off."""
    on = dict(map(_switch, flags))
    for name in _switches():
        yield name, on.get(name, False)


def _framework_of(system: str) -> Iterator[Fact]:
    if known := load_systems().get(system):
        yield "framework", known.framework
    for framework, programs in PROGRAMS.items():
        if system in programs.split():
            yield "framework", framework


def _switch(flag: str) -> tuple[Setting, bool | str]:
    """A variant's flag as a switch and its value, such as that it is on."""
    name, _, value = flag.lstrip("-").partition("=")
    return Setting(fact_of_flag(name.replace("-", "_"))), value or True


@cache
def _switches() -> tuple[Setting, ...]:
    """The switches of all systems' variants, by the names that trainers' flags have."""
    variants = [variant for known in load_systems().values() for variant in known.variants.values()]
    return tuple(sorted({_switch(flag)[0] for variant in variants for flag in variant.flags}))
