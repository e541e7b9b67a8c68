"""What is known about a run, and who says so; if two disagree, the log is refused."""

import re
from collections.abc import Iterable
from math import prod
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, TypeGuard, get_args

from reperf.logs.checks import Refused
from reperf.values import TOPOLOGY

FactName = Literal[
    "workload", "recipe", "parameters", "precision", "batch_size", "node_batch", "update_batch",
    "accumulation", "nodes", "devices_per_node", "world_size", "replicas", "tensor",
    "parallel", "global_batch", "epoch_samples", "epoch_trained", "sample_tokens",
    "step_tokens", "samples_per_token", "platform", "iterations", "print_every", "system", "framework",
    "variant", "device", "input", "data_set", "together", "forward_only", "proof",
    "run_start", "run_stop", "run_span", "hosts", "start_loss", "unconfigured",
    "sample", "token", "epoch_batches",  # what a step may be, beside other facts; nobody gives these
]  # fmt: skip
FACT_NAMES: tuple[FactName, ...] = get_args(FactName)
"""What can be known about a run, beside its settings, in the order in which people look for it."""


class Setting(str):
    """The name of a fact that a workload or a system defines: a key of its shape, or a switch."""

    __slots__ = ()


NAMES = {
    "parameters": "parameter count",
    "batch_size": "batch size per device",
    "node_batch": "batch size per node",
    "update_batch": "batch size per device and update",
    "accumulation": "gradient accumulation",
    "nodes": "number of nodes",
    "replicas": "number of replicas",
    "tensor": "number of devices that share each layer",
    "parallel": "parallelism",
    "epoch_samples": "number of samples in an epoch",
    "epoch_trained": "number of samples trained in an epoch",
    "sample_tokens": "number of tokens in a sample",
    "step_tokens": "number of tokens in a step",
    "iterations": "number of iterations",
    "print_every": "number of iterations between two lines",
    "run_start": "start of the run",
    "run_stop": "end of the run",
    "run_span": "run's start and end",
    "start_loss": "first batch's loss without dropout",
}
"""The display names of facts, where these are not the name itself."""

_PRODUCTS: tuple[tuple[FactName, tuple[FactName, ...]], ...] = (
    ("world_size", ("nodes", "devices_per_node")),
    ("global_batch", ("nodes", "node_batch")),
    ("global_batch", ("replicas", "update_batch")),
    ("global_batch", ("replicas", "batch_size", "accumulation")),
)
_OPTIONS = {
    "batch_size": "--batch-size",
    "accumulation": "--accumulation",
    "nodes": "--topology",
    "devices_per_node": "--topology",
    "world_size": "--topology",
    "global_batch": "--global-batch",
    "epoch_samples": "--epoch-samples",
}
"""The options of `reperf measure` that say a fact."""
_FILE_NAME = re.compile(r".+_b(\d{1,9})_(fp32|tf32|fp16|bf16|amp)_\d{1,9}\.(?:log|txt|out)")

LARGEST = {"nodes": 10**6, "devices_per_node": 10**4}
"""Larger values can only be wrong, as can any other fact above LARGEST_FACT."""
LARGEST_FACT = 10**15

AMP_IN_BF16 = "amp in bf16"  # the precision of a log that was asked for amp, and computed in bf16
_ALSO = {"amp": {"fp16"}, AMP_IN_BF16: {"amp", "bf16"}}
"""Other words for a precision, which another source may use."""

LOG, COMMAND_LINE = "the log", "the command line"  # the first source of facts, and the last

Name = FactName | Setting
Value = Any  # of a fact: a number, a text, a pair, or whether a switch is on, as its name has it
Fact = tuple[Name, Value]


def is_fact(name: str) -> TypeGuard[Name]:
    """Whether a fact has this name."""
    return name in FACT_NAMES or isinstance(name, Setting)


class Known(NamedTuple):
    """The value of a fact, and its source."""

    value: Value
    source: str


def called(name: str) -> str:
    """The display name of a fact."""
    return NAMES.get(name, name.replace("_", " "))


class Facts:
    """The facts about one run, as several sources give them: the log, a record, a path."""

    def __init__(self, *, accumulates: bool = False) -> None:
        """Begin with nothing known.

        Args:
            accumulates: whether a step may be several batches, so that a source must say how many.
        """
        self._known: dict[Name, Known] = {}
        self._disputed: dict[Name, tuple[Known, Known]] = {}
        self._overruled: set[tuple[Name, Known]] = set()
        self.batch_fits = False
        """Whether speeds or counts that the log prints fit the batch, whoever gives it."""
        self._accumulates = accumulates

    def add(self, source: str, facts: Iterable[Fact]) -> "Facts":
        """Add the facts of one source; a value of None says nothing.

        If a source contradicts itself on a fact that has an option, another source may decide which
        value is right.

        Raises:
            Refused: a fact is already known from another source, with another value; the message
                names both. Or a value is impossibly large.
            KeyError: there is no such fact.
        """
        for name, value in facts:
            if not is_fact(name):
                raise KeyError(name)
            if value is not None:
                self._put(name, Known(value, source))
        for name, factors in _PRODUCTS:
            self._multiply(name, factors)
        self._divide_tokens()
        return self

    def settle(self) -> None:
        """Check that what is known fits together.

        Raises:
            Refused: a source contradicts itself, and no other decides; the run was no training; or
                the global batch is not made of as many batches as are accumulated.
        """
        for name, (old, new) in self._disputed.items():
            option = f"; {_OPTIONS[name]} says which is right" if name in _OPTIONS else ""
            raise Refused("contradiction", _contradiction(name, old, new) + option)
        batch, batches = self._known.get("global_batch"), self.get("accumulation")
        if not self._accumulates or batch is None:
            return
        if batches is None and "update_batch" not in self._known and batch.source != LOG:
            raise Refused("unknown", self._missing("accumulation"))
        if batches is not None and batch.value % batches:
            raise Refused(
                "contradiction",
                f"the global batch of {batch.value} by {batch.source} is not {batches} batches, "
                f"which a step is by {self._known['accumulation'].source}",
            )

    def get(self, name: Name) -> Value:
        """A fact, or None if no source gives it."""
        if name == "samples_per_token":
            tokens = self.get("sample_tokens")
            return 1 / tokens if tokens else None
        known = self._known.get(name)
        return known.value if known else None

    @property
    def batch_per_device(self) -> Value:
        """Samples of one batch of a device: as a source says, or the global batch over all batches.

        None if nothing says it, or no whole number follows.
        """
        if (batch := self.get("batch_size")) is not None:
            return batch
        replicas = self.get("replicas") or ((known := self._by_devices()) and known.value)
        batches = self.get("accumulation") or (None if self._accumulates else 1)
        if (whole := self.get("global_batch")) is None or not replicas or not batches:
            return None
        each, rest = divmod(whole, replicas * batches)
        return None if rest else each

    def sources(self) -> dict[Name, str]:
        """The source of each fact that is known, by the fact's name."""
        return {name: known.source for name, known in self._known.items()}

    def need(self, name: Name) -> Value:
        """A fact.

        Raises:
            Refused: no source gives it; the message names the options that do.
        """
        if name not in self._known:
            raise Refused("unknown", self._missing(name))
        return self._known[name].value

    def _missing(self, name: Name) -> str:
        """The message that a fact is not known, with the options that give what is missing."""
        lacking: list[Name] = self._lacking_of_batch() if name == "global_batch" else [name]
        ways: list[list[Name]] = [lacking]
        if name == "global_batch" and lacking != ["accumulation"]:
            ways.append([name, *(fact for fact in lacking if fact == "accumulation")])
        listed = list(filter(None, map(_listed, ways)))
        hint = f"; allowed: {', or '.join(listed)}" if listed else ""
        return f"the {called(name)} is not known: neither log, record nor path says it{hint}"

    def _lacking_of_batch(self) -> list[Name]:
        """The factors of the global batch that no source gives."""
        replicas = {"world_size", "replicas"} & self._known.keys()
        if {"update_batch", "node_batch"} & self._known.keys():
            return [] if replicas else ["world_size"]
        lacking: list[Name] = [] if "batch_size" in self._known else ["batch_size"]
        lacking += [] if replicas else ["world_size"]
        unknown = self._accumulates and "accumulation" not in self._known
        return [*lacking, "accumulation"] if unknown else lacking

    def _put(self, name: Name, new: Known) -> None:
        largest = LARGEST.get(name, LARGEST_FACT)
        if isinstance(new.value, int | float) and not new.value <= largest:
            why = f"the {called(name)} by {new.source} is above {largest:.0e}"
            raise Refused("impossible", why)
        if name in self._disputed:
            self._decide(name, new)
            return
        old = self._known.setdefault(name, new)
        if _agree(name, old.value, new.value) or (name, new) in self._overruled:
            return
        if old.source != new.source:
            raise Refused("contradiction", _contradiction(name, old, new))
        self._disputed[name] = self._known.pop(name), new

    def _divide_tokens(self) -> None:
        """Derive the samples in a step, or the tokens in a sample, from the tokens in a step."""
        step = self._known.get("step_tokens")
        if step is None:
            return
        quotients: tuple[tuple[FactName, FactName], ...] = (
            ("global_batch", "sample_tokens"),
            ("sample_tokens", "global_batch"),
        )
        for name, divisor in quotients:
            if (known := self._known.get(divisor)) is None:
                continue
            if step.value % known.value:
                raise Refused(
                    "contradiction",
                    f"the {called('step_tokens')}, {step.value} by {step.source}, is no multiple of "
                    f"the {called(divisor)}, {known.value} by {known.source}",
                )
            sources = " and ".join(dict.fromkeys((step.source, known.source)))
            self._put(name, Known(step.value // known.value, sources))
            return

    def _decide(self, name: Name, new: Known) -> None:
        """Choose among the values of a source that contradicts itself by what another source says.

        Of a fact without an option, no value is chosen: only the log can say what it trained.
        """
        disputed = self._disputed[name]
        if new.source == disputed[0].source or name not in _OPTIONS:
            return
        if new.value not in (disputed[0].value, disputed[1].value):
            raise Refused("contradiction", _contradiction(name, disputed[0], new))
        del self._disputed[name]
        self._known[name] = new
        self._overruled |= {(name, known) for known in disputed}

    def _multiply(self, name: FactName, factors: tuple[FactName, ...]) -> None:
        """Derive a product, if all factors are known.

        Unless a source says otherwise, accumulation is 1 if the log's format has none.
        """
        known: list[Known | None] = [self._known.get(factor) for factor in factors]
        if "replicas" in factors and known[0] is None:
            known[0] = self._by_devices()
        if "accumulation" in factors and known[-1] is None and not self._accumulates:
            known.pop()
        all_known = [factor for factor in known if factor is not None]
        if len(all_known) < len(known):
            return
        sources = " and ".join(dict.fromkeys(factor.source for factor in all_known))
        self._put(name, Known(prod(factor.value for factor in all_known), sources))

    def _by_devices(self) -> Known | None:
        """How many replicas devices hold: each has one, unless several share each layer."""
        world, tensor = self._known.get("world_size"), self._known.get("tensor")
        if world is None or tensor is None:
            return world
        if world.value % tensor.value:
            raise Refused(
                "contradiction",
                f"the world size of {world.value} by {world.source} is no multiple of "
                f"{tensor.value}, the {called('tensor')} by {tensor.source}",
            )
        sources = " and ".join(dict.fromkeys((world.source, tensor.source)))
        return Known(world.value // tensor.value, sources)


def _agree(name: str, one: Any, other: Any) -> bool:  # noqa: ANN401 - values of facts
    if name != "precision":
        return one == other
    return one == other or one in _ALSO.get(other, ()) or other in _ALSO.get(one, ())


def _contradiction(name: str, old: Known, new: Known) -> str:
    old_value, new_value = shown(old.value), shown(new.value)
    return f"{called(name)} is {old_value} by {old.source}, {new_value} by {new.source}"


def shown(value: Value) -> object:
    """A fact's value as it is shown: a switch is on or off."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


def _listed(facts: Iterable[Name]) -> str:
    """The options that give some facts together; empty if there are none."""
    return " and ".join(dict.fromkeys(_OPTIONS[fact] for fact in facts if fact in _OPTIONS))


def facts_in_path(path: PurePath | str) -> list[Fact]:
    """The facts in a path that follows DLPerf's naming: `<N>n<G>g/<model>_b<B>_<precision>_<repeat>.log`."""
    path = PurePath(path)
    facts: list[Fact] = []
    if topology := re.search(TOPOLOGY, path.parent.name):
        facts += [("nodes", int(topology[1])), ("devices_per_node", int(topology[2]))]
    if name := _FILE_NAME.fullmatch(path.name):
        facts.append(("batch_size", int(name[1])))
        facts.append(("precision", "amp" if name[2] == "fp16" else name[2]))
    return facts
