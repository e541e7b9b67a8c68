"""Builds from locks, and existing environments, whose packages reperf only records.

A lock becomes a folder with a Python and the lock's packages. Its programs name the folder and the
Python that it was built with, so it can be neither moved nor copied. Rebuilding is quick, because
uv links packages from its cache.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

from uv import find_uv_bin

from reperf.builds import Built, LockBuild, SiteBuild
from reperf.builds.inside import BuildPython, modules_of
from reperf.builds.installed import check_locked
from reperf.builds.site_python import python_of
from reperf.builds.steps import do, uv_settings
from reperf.errors import ReperfError
from reperf.files import sha256
from reperf.host import Site
from reperf.programs import ended


def build_lock(build: LockBuild) -> None:
    """Build an environment from scratch; a ReperfError ends with the last lines of what failed.

    The system's packages and all that they need are installed in the versions that the lock
    names. The lock only constrains: what a platform does not need, such as CUDA's libraries beside
    a CPU build of torch, is not installed. uv's settings in the system's folder say how to build a
    package that uv has to compile; uv keeps it for the next time.
    """
    folder, lock = build.folder, build.lock_name
    # Launchers name their interpreter by its path, which must outlive a link to the folder.
    home = folder.resolve()
    python = str(home / build.python.relative_to(folder))
    version, uv = build.settings.python, find_uv_bin()
    do(
        [uv, "venv", "--clear", "--force", "--no-project", "--python", version, str(home)],
        trouble=f"{folder}: Python {version} is neither installed nor can it be fetched",
    )
    # The lock fixes what is installed and what compiles packages.
    fixed, *files = map(str, build.recipe)
    install = [uv, "pip", "install", "--python", python, "--constraint", fixed]
    install += ["--build-constraint", fixed]
    install += [word for file in files for word in ("--config-file", file)]
    # What pip is told to look at first may hold a build of the framework for CPUs.
    # Asked for as `do` asks, so that pip is started once.
    settings = uv_settings() if build.device == "cpu" else uv_settings(links_of_pip=False)
    # uv's settings may name programs of ours.
    compilers = build.system.host.folder.resolve() / "compile"
    programs = os.pathsep.join((os.environ.get("PATH", os.defpath), str(compilers)))
    install += build.settings.packages
    # Compiled once, here, rather than by every rank of every run where no bytecode is kept.
    environment = {"UV_COMPILE_BYTECODE": "1", **os.environ, **settings, "PATH": programs}
    # What uv has kept needs no network. Where a package index forbids caches to keep a source, uv
    # would compile it again, Horovod for minutes.
    offline = ended([*install, "--offline"], environment)
    if offline.returncode == 0:
        sys.stderr.write(offline.stderr)
    else:
        do(install, trouble=f"{lock}: cannot be installed", environment=environment)
    if build.device == "cuda":
        linked = [python, "-m", "trainers.link", build.system.framework]
        do(linked, trouble=f"{folder}: CUDA's libraries cannot be linked for the framework")
    started = BuildPython([python], str(folder))
    contents = started.contents(build.system.framework, modules_of(build.system))
    check_locked(contents.packages, build.lock, lock)
    if build.device == "cuda" and contents.cuda is None:
        raise ReperfError(
            f"{lock}: {build.system.framework} {contents.framework} is a build for CPUs; "
            "allowed: one for CUDA: is another package index or wheel preferred here?"
        )
    started.start_trainers(build.system, contents)
    Built(
        recipe_sha256=build.recipe_digest,
        built_in=str(home),
        lock=lock,
        lock_sha256=sha256(build.lock),
        **contents.model_dump(exclude_unset=True),
    ).write(folder)


def build_site(build: SiteBuild, folder: Path) -> None:
    """Look into an environment, start its trainers once, and record what it is.

    Refused if it lacks the framework or what trainers import, if it is for CPUs where GPUs train,
    or if it is no longer the planned one, whose digest is in the folder's name.
    """
    if build.folder != folder:
        raise ReperfError(
            f"environment {build.environment}: has changed since this call planned its runs; the "
            f"next call plans them again"
        )
    # A first import from a shared disk may take minutes.
    started = replace(python_of(build.environment), time_limit=None)
    contents = started.contents_with(build.system.framework, modules_of(build.system))
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
