"""A cell's key: equal where two runs are repeats of one thing, whatever report they are in.

    1:5d0c9e1f7a42 batch_size=2; build=lock 9d3c5a72e0b1; device=cpu, AMD EPYC 7B13; input=tfrecord;
    precision=fp32; shape=image_size:32; system=pytorch; threads=1; topology=1n1g; workload=resnet50

The version of the rule below stands before the colon, a digest of the parts after it; the parts
follow, for people. All that decides a run is a part, unless it is named here. A part without a
value is left out: a field that a run gains later changes no key of runs that do without it.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from typing import Any

from reperf.config import Run
from reperf.host import Environment
from reperf.records.run_record import RunRecord
from reperf.records.shell import deciding, differing_variables

VERSION = 1
NO_PART = frozenset(
    {
        *("suite", "repeat", "seed"),  # which of its repeats it is, and in whose table it stands
        *("iterations", "print_every"),  # how long it was watched
        "batch_multiple",  # how its batch size was found
        "data",  # a folder of that machine
        # The build's digest says more.
        *("lock", "lock_file", "container", "environment", "label"),
    }
)  # the fields of a run that do not make two cells different things
VARIABLES = "variables"  # the part for what the shell gave the ranks
CLUSTER = "cluster"
"""The part for what a site has run before the launcher, and where it has put the data."""
SHOWN = 12
"""Hexadecimal digits of a digest: 2 ** 48 are enough for all cells that were ever measured."""
_OF_CLUSTER = ("before", "stage")
_EMPTY: tuple[Any, ...] = (None, "", [], {})


def key_of(record: RunRecord) -> str:
    """The key of the cell that a run is of; "" where its record does not say on what it trained."""
    device = _device(record)
    if not device:
        return ""
    parts = record.run.model_dump(mode="json", exclude=set(NO_PART))
    parts |= {"device": device, "build": _build(record.environment)}
    cluster = record.cluster or {}
    parts[VARIABLES] = _named(deciding(record.inherited))
    parts[CLUSTER] = _named({name: cluster[name] for name in _OF_CLUSTER if name in cluster})
    parts["overlay"] = record.environment.overlay
    parts = {name: parts[name] for name in sorted(parts) if parts[name] not in _usual(name)}
    exact = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    shown = "; ".join(f"{name}={_shown(value)}" for name, value in parts.items())
    return f"{VERSION}:{sha256(exact.encode()).hexdigest()[:SHOWN]} {shown}"


def _usual(name: str) -> tuple[Any, ...]:
    """The values with which a part is left out: none, and the default of a run."""
    field = Run.model_fields.get(name)
    return _EMPTY if field is None or field.is_required() else (*_EMPTY, field.default)


def short(key: str) -> str:
    """A key without its parts, such as "1:5d0c9e1f7a42"."""
    return key.partition(" ")[0] or key


def differing(keys: Iterable[str]) -> list[str]:
    """The names of the parts in which keys differ."""
    named = [dict(parts_of(key)) for key in keys]
    names = dict.fromkeys(name for parts in named for name in parts)
    return [name for name in names if len({parts.get(name) for parts in named}) > 1]


def differences(keys: Iterable[str], records: Collection[RunRecord]) -> list[str]:
    """In what the runs of a cell differ, and repeats do not; empty keys are unknown ones."""
    names = differing_variables(records)
    parts = [part for part in differing(filter(None, {*keys})) if part != VARIABLES or not names]
    hosts = [record.host for record in records]
    others: dict[str, Collection[object]] = {
        "when the images of their folder were written": {
            record.data_set.times for record in records if record.data_set
        },
        "how many CPUs they may use": {host.cores for host in hosts},
        "operating system": {(host.os, host.kernel) for host in hosts},
        "GPU driver": {host.driver for host in hosts},
    }
    return parts + names + [what for what, values in others.items() if len(values) > 1]


def parts_of(key: str) -> Iterable[tuple[str, str]]:
    """The names of a key's parts, and their values as people read them."""
    for part in key.partition(" ")[2].split("; "):
        name, _, value = part.partition("=")
        yield name, value


def _device(record: RunRecord) -> str:
    """What each device is: its kind and model, as rank 0's machine says."""
    kind, host = record.run.device, record.host
    gpus = [gpu.name for gpu in host.gpus[: record.run.devices_per_node]]
    models = [host.cpu] if kind == "cpu" else list(dict.fromkeys(gpus))
    return ", ".join([kind, *models]) if any(models) else ""


def _build(environment: Environment) -> str:
    image, site = environment.image, environment.site
    kind, digest = ("image", image.digest) if image else ("lock", environment.lock_sha256)
    if site:
        kind, digest = "environment", site.digest
    return f"{kind} {digest.removeprefix('sha256:')[:SHOWN]}"


def _named(given: Mapping[str, Any]) -> str:
    """Names, and a digest with the values, which may hold what parts a key."""
    digest = sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()
    return f"{'+'.join(sorted(given))} {digest[:SHOWN]}" if given else ""


def _shown(value: Any) -> str:  # noqa: ANN401 - whatever a run holds
    """A value as a key shows it; only the digest is exact."""
    if isinstance(value, dict):
        return ",".join(
            f"{name}:{_shown(value[name])}" for name in sorted(value) if value[name] not in _EMPTY
        )
    if isinstance(value, list):
        return "+".join(map(_shown, value))
    return str(value)
