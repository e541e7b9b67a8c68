"""Of which systems a test is: all of them, or one of those that are alike.

`make test-all` runs every case, `.ci/run` those that are not marked `weekly`.
"""

from collections.abc import Callable, Collection, Hashable

import pytest
from reperf.systems import System, load_systems

from tests.systems.trainer import trained_by

# Those with servers have tests of their own.
SYSTEMS = {name: one for name, one in load_systems().items() if trained_by(one) and not one.serve}
USUAL = "bert-base"
"""Besides its first workload, what each system trains in CI."""
TWICE = ("ngc-mxnet",)
"""Trained weekly only: on a CPU its code and its environment are those of mxnet."""


def itself(system: System) -> Hashable:
    return system.id


def launcher(system: System) -> Hashable:
    return tuple(system.launch)


def backend(system: System) -> Hashable:
    return system.framework, system.backend


def code_of(name: str, workload: str) -> Hashable:
    """What trains a workload on synthetic batches."""
    return backend(SYSTEMS[name]), workload, SYSTEMS[name].workloads[workload].model


def case(*values: object, weekly: bool = False):
    """The parameters of a test, of which the first is a system's name.

    One process tests a system, for what that has trained once serves several tests.
    """
    marks = [pytest.mark.xdist_group(values[0])] + [pytest.mark.weekly] * weekly
    return pytest.param(*values, marks=marks)


def some(*systems: str):
    """A test of some systems."""
    return pytest.mark.parametrize("system", [case(name) for name in systems])


def unlike(alike: Callable[[System], Hashable], but: Collection[str] = ()) -> list[str]:
    """Of systems that are alike, the last one: pytorch, and not ngc-pytorch."""
    names = {alike(one): name for name, one in SYSTEMS.items()}.values()
    return [name for name in names if name not in but]


def each(
    alike: Callable[[System], Hashable] = itself,
    *,
    but: Collection[str] = (),
    weekly: Callable[[str], bool] = lambda name: False,
):
    """A test of every system, or of one of those that are alike."""
    cases = [case(name, weekly=weekly(name)) for name in unlike(alike, but)]
    return pytest.mark.parametrize("system", cases)


def each_workload(
    alike: Callable[[System], Hashable] = itself,
    fits: Callable[[str], bool] = lambda workload: True,
    *,
    but: Collection[str] = (),
    weekly: Callable[[str, str], bool] = lambda name, of: (
        name not in unlike(backend, TWICE) or of not in (first(name), USUAL)
    ),
):
    """A test of what every system trains: its first workload, and what no other's code trains.

    Left out of CI, if nothing else is said, are all but two workloads of one system a backend.
    """
    names = unlike(alike, but)
    last = {code_of(name, of): name for name in names for of in trained_by(SYSTEMS[name])}
    cases = [
        case(name, workload, weekly=weekly(name, workload))
        for name in names
        for workload in filter(fits, trained_by(SYSTEMS[name]))
        if last[code_of(name, workload)] == name or workload == first(name)
    ]
    return pytest.mark.parametrize(("system", "workload"), cases)


def first(name: str) -> str:
    return trained_by(SYSTEMS[name])[0]
