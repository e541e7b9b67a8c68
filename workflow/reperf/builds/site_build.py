"""Builds from existing environments: reperf records what they have and installs nothing."""

from dataclasses import replace
from pathlib import Path

from reperf.builds.build import Built, SiteBuild
from reperf.builds.site_python import python_of
from reperf.errors import ReperfError
from reperf.host import Site


def build_site(build: SiteBuild, folder: Path) -> None:
    """Look into an environment, start its trainers once, and record what it is.

    Raises:
        ReperfError: it does not start, lacks the framework or what trainers import, or is for CPUs
            where GPUs train; or it is no longer the planned one, whose digest is in the folder's
            name.
    """
    if build.folder != folder:
        raise ReperfError(
            f"environment {build.environment}: has changed since this call planned its runs; the "
            f"next call plans them again"
        )
    # A first import from a shared disk may take minutes.
    started = replace(python_of(build.environment), time_limit=None)
    contents = started.contents_with(build.system.framework)
    on_gpus = contents.cuda or contents.rocm
    if build.device == "cuda" and not on_gpus:
        raise ReperfError(
            f"environment {build.environment}: {build.system.framework} {contents.framework} is a "
            "build for CPUs; allowed: one for CUDA or ROCm"
        )
    started.start_trainers(build.system, contents)
    build.folder.mkdir(parents=True, exist_ok=True)
    site = Site(
        named=str(build.environment), executable=build.listed.executable, digest=build.listed.digest
    )
    Built(
        recipe_sha256=build.recipe_digest,
        built_in=str(build.folder.resolve()),
        site=site,
        **contents.model_dump(exclude_unset=True),
    ).write(build.folder)
