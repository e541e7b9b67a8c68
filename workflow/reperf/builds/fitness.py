"""Whether a build runs on a node's GPUs, and with its driver."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from reperf.builds.build import Build, ImageBuild, LockBuild
from reperf.builds.built import Built, read_built
from reperf.errors import ReperfError
from reperf.systems import LockName
from reperf.systems.capability import why_not_on, why_not_with
from reperf.training.record import Host


class Code(NamedTuple):
    """What a build's GPU code asks of a machine; None and empty where no source says it."""

    driver: str | None
    architectures: tuple[str, ...]


def code_of(build: Build) -> Code:
    """What is known of a build's GPU code: what was found in it, else what was declared."""
    if isinstance(build, LockBuild):
        declared = build.settings
    else:
        known = build.system.image
        # What is known of one image says nothing of another.
        declared = known if known and known.reference == build.container.image else None
    found = _read(build)
    return Code(
        driver=declared.driver if declared else None,
        architectures=(found.architectures if found else ())
        or (declared.architectures if declared else ()),
    )


def why_unfit(build: Build, hosts: Iterable[Host]) -> str | None:
    """Why a build does not run on the GPUs of some machines, or None if it does.

    Args:
        hosts: of which GPUs and driver are known; others are passed over.
    """
    hosts = list(hosts)
    why = _why_unfit(build, hosts)
    if why is None or isinstance(build, ImageBuild):
        return why and f"{build.system.title}, image: {why}"
    other = fit_lock(build, hosts)
    hint = f"; {LockBuild(build.system, other).lock.name} serves it" if other else ""
    return f"{build.system.title}, lock: {why}{hint}"


def fit_lock(build: LockBuild, hosts: Sequence[Host]) -> LockName | None:
    """Another lock of a build's system that runs on the GPUs of some machines; None without one."""
    others = (name for name in build.system.locks_for(build.device) if name != build.name)
    return next(
        (name for name in others if not _why_unfit(LockBuild(build.system, name), hosts)), None
    )


def _why_unfit(build: Build, hosts: Sequence[Host]) -> str | None:
    code = code_of(build)
    for host in hosts:
        reasons = [
            why_not_on(code.architectures, gpu.capability) for gpu in host.gpus if gpu.capability
        ]
        reasons += [why_not_with(host.driver, code.driver)] if host.driver else []
        if why := next(filter(None, reasons), None):
            return why
    return None


def _read(build: Build) -> Built | None:
    try:
        return read_built(build)
    except ReperfError:
        return None
