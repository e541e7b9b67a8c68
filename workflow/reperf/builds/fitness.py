"""Whether a build runs on a node's GPUs, and with its driver."""

from collections.abc import Iterable, Sequence

from reperf.builds.build import Build, ImageBuild, LockBuild
from reperf.builds.built import read_built
from reperf.errors import ReperfError
from reperf.host import Host
from reperf.systems import LockName, Needs
from reperf.systems.capability import why_not_in, why_not_on, why_not_with


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


def why_not_computed(precision: str, hosts: Iterable[Host]) -> str | None:
    """Why the GPUs of some machines do not compute in a precision, or None if they do.

    Args:
        precision: of a run on GPUs.
        hosts: of which GPUs are known; others are passed over.
    """
    capabilities = (gpu.capability for host in hosts for gpu in host.gpus if gpu.capability)
    return next(filter(None, (why_not_in(precision, one) for one in capabilities)), None)


def fit_lock(build: LockBuild, hosts: Sequence[Host]) -> LockName | None:
    """Another lock of a build's system that runs on the GPUs of some machines; None without one."""
    others = (name for name in build.system.locks_for(build.device) if name != build.name)
    return next(
        (name for name in others if not _why_unfit(LockBuild(build.system, name), hosts)), None
    )


def _why_unfit(build: Build, hosts: Sequence[Host]) -> str | None:
    needs = _needs(build)
    architectures = needs.architectures or _said_by_its_framework(build)
    for host in hosts:
        reasons = [why_not_on(architectures, gpu.capability) for gpu in host.gpus if gpu.capability]
        reasons += [why_not_with(host.driver, needs.driver)] if host.driver else []
        if why := next(filter(None, reasons), None):
            return why
    return None


def _needs(build: Build) -> Needs:
    """What is declared of a build."""
    if isinstance(build, LockBuild):
        return build.settings
    known = build.system.image
    # What is known of one image says nothing of another.
    return known if known and known.reference == build.container.image else Needs()


def _said_by_its_framework(build: Build) -> Sequence[str]:
    """The architectures that a build's framework names, if it is made, and if that can tell."""
    try:
        return read_built(build).architectures
    except ReperfError:
        return ()
