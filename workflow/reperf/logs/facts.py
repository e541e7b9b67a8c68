"""What is known about a run, and who says so; if two disagree, the log is refused."""

import re
from collections.abc import Iterable
from math import prod
from pathlib import PurePath
from typing import NamedTuple

from reperf.config import TOPOLOGY

NAMES = {
    "workload": "workload",
    "parameters": "parameter count",
    "precision": "precision",
    "batch_size": "batch size per device",
    "node_batch": "batch size per node",
    "accumulation": "gradient accumulation",
    "nodes": "number of nodes",
    "devices_per_node": "devices per node",
    "world_size": "world size",
    "replicas": "number of replicas",
    "global_batch": "global batch",
    "epoch_samples": "samples in an epoch",
}
"""What people call the facts. Those of a workload's shape go by their own names."""

_PRODUCTS = (
    ("world_size", ("nodes", "devices_per_node")),
    ("global_batch", ("nodes", "node_batch")),
    ("global_batch", ("replicas", "batch_size", "accumulation")),
)
_FILE_NAME = re.compile(r".+_b(\d{1,9})_(fp32|fp16|amp)_\d{1,9}\.(?:log|txt|out)")

LARGEST = {"nodes": 10**6, "devices_per_node": 10**4}
"""Larger values can only be wrong, as can any other fact above LARGEST_FACT."""
LARGEST_FACT = 10**15

Fact = tuple[str, object]
"""A name (one of NAMES, or a key of a workload's shape) and a value."""


class Refused(Exception):
    """A log gives no number; the message says why."""


class Known(NamedTuple):
    """The value of a fact, and who says so."""

    value: object
    teller: str


def called(name: str) -> str:
    """What people call a fact."""
    return NAMES.get(name, name.replace("_", " "))


class Facts:
    """The facts about one run, as several tellers give them."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}

    def add(self, teller: str, facts: Iterable[Fact]) -> "Facts":
        """Take what one teller says: a log, a record, a path; a value of None says nothing.

        Raises:
            Refused: a fact is already known with another value; the message names both. Or a value
                is impossibly large.
        """
        for name, value in facts:
            if value is not None:
                self._put(name, Known(value, teller))
        for name, factors in _PRODUCTS:
            self._multiply(name, factors)
        return self

    def get(self, name: str) -> object:
        """A fact, or None if nobody said it."""
        known = self._known.get(name)
        return known.value if known else None

    def tellers(self) -> dict[str, str]:
        """Who said each fact that is known, by its name."""
        return {name: known.teller for name, known in self._known.items()}

    def need(self, name: str) -> object:
        """A fact.

        Raises:
            Refused: nobody said it.
        """
        if name not in self._known:
            raise Refused(f"the {called(name)} is not known: neither log, record nor path says it")
        return self._known[name].value

    def _put(self, name: str, new: Known) -> None:
        largest = LARGEST.get(name, LARGEST_FACT)
        if isinstance(new.value, int | float) and not new.value <= largest:
            raise Refused(f"the {called(name)} by {new.teller} is above {largest:.0e}")
        old = self._known.setdefault(name, new)
        if old.value != new.value:
            raise Refused(
                f"{called(name)} is {old.value} by {old.teller}, {new.value} by {new.teller}"
            )

    def _multiply(self, name: str, factors: tuple[str, ...]) -> None:
        """Derive a product, if all factors are known.

        Unless somebody says otherwise, accumulation is 1 and each device holds a replica.
        """
        known = [self._known.get(factor) for factor in factors]
        if "replicas" in factors and known[0] is None:
            known[0] = self._known.get("world_size")
        if "accumulation" in factors and known[-1] is None:
            known.pop()
        if None in known:
            return
        tellers = " and ".join(dict.fromkeys(one.teller for one in known))
        self._put(name, Known(prod(one.value for one in known), tellers))


def facts_in_path(path: PurePath | str) -> list[Fact]:
    """What DLPerf's naming says: `<N>n<G>g/<model>_b<B>_<precision>_<repeat>.log`."""
    path = PurePath(path)
    facts: list[Fact] = []
    if topology := TOPOLOGY.fullmatch(path.parent.name):
        facts += zip(("nodes", "devices_per_node"), map(int, topology.groups()), strict=True)
    if name := _FILE_NAME.fullmatch(path.name):
        facts.append(("batch_size", int(name[1])))
        facts.append(("precision", "fp32" if name[2] == "fp32" else "amp"))
    return facts
