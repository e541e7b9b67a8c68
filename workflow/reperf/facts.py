"""What is known about a run, and from where; two sources that disagree are an error."""

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import NamedTuple

from reperf.config import TOPOLOGY

NAMES = {
    "workload": "workload",
    "parameters": "parameter count",
    "batch_size": "batch size per device",
    "accumulation": "gradient accumulation",
    "nodes": "number of nodes",
    "devices_per_node": "devices per node",
    "world_size": "world size",
    "global_batch": "global batch",
}
"""The facts, and what people call them."""

_PRODUCTS = {
    "world_size": ("nodes", "devices_per_node"),
    "global_batch": ("world_size", "batch_size", "accumulation"),
}
_FILE_NAME = re.compile(r".+_b(\d+)_(?:fp32|fp16|amp)_\d+\.(?:log|txt|out)")


class Contradiction(Exception):
    """Two sources say different things; the message names both."""


class Known(NamedTuple):
    """A fact and who says so."""

    value: object
    source: str


class Facts:
    """The facts about one run, gathered from several sources.

    Raises (from `add`):
        Contradiction: a fact is known already, and was another.
    """

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}

    def add(self, source: str, facts: Iterable[tuple[str, object]]) -> "Facts":
        """Take what one source says; None says nothing."""
        for name, value in facts:
            if value is not None:
                self._put(name, Known(value, source))
        for name, factors in _PRODUCTS.items():
            self._multiply(name, factors)
        return self

    def copy(self) -> "Facts":
        """The same facts, to be added to on their own."""
        twin = Facts()
        twin._known = dict(self._known)
        return twin

    def get(self, name: str) -> object:
        """A fact, or None if nobody said it."""
        known = self._known.get(name)
        return known.value if known else None

    def _put(self, name: str, new: Known) -> None:
        old = self._known.setdefault(name, new)
        if old.value != new.value:
            raise Contradiction(
                f"{NAMES[name]} is {old.value} by {old.source}, {new.value} by {new.source}"
            )

    def _multiply(self, name: str, factors: tuple[str, ...]) -> None:
        """Derive a product, where all factors are known; accumulation is 1 unless said."""
        known = [self._known.get(factor) for factor in factors if factor != "accumulation"]
        if "accumulation" in factors and "accumulation" in self._known:
            known.append(self._known["accumulation"])
        if None in known:
            return
        product = 1
        for one in known:
            product *= one.value
        # The product's own source, where it is derived from several: all of them.
        sources = " and ".join(dict.fromkeys(one.source for one in known))
        self._put(name, Known(product, sources))


def facts_in_path(path: PurePath | str) -> list[tuple[str, object]]:
    """What DLPerf's naming says: `<N>n<G>g/<model>_b<B>_<precision>_<repeat>.log`."""
    path = PurePath(path)
    facts: list[tuple[str, object]] = []
    if topology := TOPOLOGY.fullmatch(path.parent.name):
        facts += zip(("nodes", "devices_per_node"), map(int, topology.groups()), strict=True)
    if name := _FILE_NAME.fullmatch(path.name):
        facts.append(("batch_size", int(name[1])))
    return facts
