"""Whether what compiles while it trains has a compiler, on this machine or in its image."""

from trainers.contract.compilers import COMPILERS, compiler_for

from reperf.builds import ImageBuild, build_of
from reperf.builds.built import RECORD, read_built
from reperf.config import Run
from reperf.systems import load_systems


def why_not_compiled(run: Run) -> str | None:
    """Why a run cannot compile where it would start now, or None if it can or need not.

    Of an image, that is known once reperf has looked into it.
    """
    system = load_systems()[run.system]
    if not any(variant.compiles for variant in system.varied(run.variant)):
        return None
    build = build_of(run)
    if not isinstance(build, ImageBuild):
        found, where = compiler_for(run.device), "here"
    elif (build.folder / RECORD).exists():
        found = read_built(build).compilers.get(run.device)
        where = f"in {build.container.image}"
    else:
        return None
    if found is not None:
        return None
    kind, variable, usual = COMPILERS[run.device]
    return (
        f"{system.title} with {run.variant} needs a {kind} compiler, and none is {where}: "
        f"{' or '.join(usual)}, or what {variable} names"
    )
