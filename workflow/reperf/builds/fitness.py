"""Whether a build runs on a machine: on its GPUs, with its driver, and with a compiler there."""

from collections.abc import Iterable, Sequence

from trainers.contract.compilers import COMPILERS, compiler_for

from reperf.builds import RECORD, Build, Built, ImageBuild, LockBuild, SiteBuild, build_of
from reperf.config import Run
from reperf.errors import ReperfError
from reperf.host import Host
from reperf.systems import LockName, Needs, load_systems
from reperf.systems.gpu_rules import why_not_in, why_not_on, why_not_with


def why_unfit(build: Build, hosts: Iterable[Host]) -> str | None:
    """Why a build does not run on some machines' GPUs, as far as known; None if it does."""
    hosts = list(hosts)
    why = _why_unfit(build, hosts)
    if why is None:
        return None
    if not isinstance(build, LockBuild):
        kind = "image" if isinstance(build, ImageBuild) else "environment"
        return f"{build.system.title}, {kind}: {why}"
    other = fit_lock(build, hosts)
    hint = f"; {LockBuild(build.system, other).lock.name} serves it" if other else ""
    return f"{build.system.title}, lock: {why}{hint}"


def why_not_computed(precision: str, hosts: Iterable[Host]) -> str | None:
    """Why some machines' GPUs, as far as known, do not compute in a precision; None if they do."""
    capabilities = (gpu.capability for host in hosts for gpu in host.gpus if gpu.capability)
    reasons = (why_not_in(precision, capability) for capability in capabilities)
    return next(filter(None, reasons), None)


def why_not_compiled(run: Run) -> str | None:
    """Why a run cannot compile where it would start now, or None if it can or need not.

    For an image or an existing environment, reperf knows this after it has looked into it.
    """
    system = load_systems()[run.system]
    if not any(variant.compiles for variant in system.varied(run.variant)):
        return None
    build = build_of(run)
    if isinstance(build, LockBuild):
        compiler, where = compiler_for(run.device), "here"
    elif (build.folder / RECORD).exists():
        compiler = Built.read(build.folder).compilers.get(run.device)
        where = (
            f"in {build.container.image if isinstance(build, ImageBuild) else build.environment}"
        )
    else:
        return None
    if compiler is not None:
        return None
    kind, variable, usual = COMPILERS[run.device]
    return (
        f"{system.title} with {run.variant} needs a {kind} compiler, and none is {where}: "
        f"{' or '.join(usual)}, or what {variable} names"
    )


def fit_lock(build: LockBuild, hosts: Sequence[Host]) -> LockName | None:
    """Another lock of a build's system that runs on the GPUs of some machines; None without one."""
    others = (name for name in build.system.locks_for(build.device) if name != build.name)
    return next(
        (name for name in others if not _why_unfit(LockBuild(build.system, name), hosts)), None
    )


def _why_unfit(build: Build, hosts: Sequence[Host]) -> str | None:
    needs = _needs(build)
    architectures = needs.architectures or _architectures_found_in(build)
    for host in hosts:
        reasons = [_why_not_amds(build, gpu.gfx) for gpu in host.gpus if gpu.gfx]
        reasons += [
            why_not_on(architectures, gpu.capability) for gpu in host.gpus if gpu.capability
        ]
        reasons += [why_not_with(host.driver, needs.driver)] if host.driver else []
        if why := next(filter(None, reasons), None):
            return why
    return None


def _why_not_amds(build: Build, gfx: str) -> str | None:
    """Why a build does not run on an AMD GPU; None if it does, or if this is unknown yet."""
    try:
        is_for_amd = isinstance(build, SiteBuild) and Built.read(build.folder).rocm
    except ReperfError:
        return None
    return None if is_for_amd else f"it is not a build for ROCm; the GPU is AMD's {gfx}"


def _needs(build: Build) -> Needs:
    if isinstance(build, LockBuild) and not build.file:
        return build.settings
    if not isinstance(build, ImageBuild):
        return Needs()
    known = build.system.image
    # What is known of one image says nothing of another.
    return known if known and known.reference == build.container.image else Needs()


def _architectures_found_in(build: Build) -> Sequence[str]:
    try:
        return Built.read(build.folder).architectures
    except ReperfError:
        return ()
