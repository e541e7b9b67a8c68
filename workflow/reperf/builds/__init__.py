"""Builds: how a system gets its framework, and what was really found in it.

A lock becomes an environment, a folder under .envs/ with a Python of its own. An image is pulled
once, and a folder under .images/ has what it lacks. For an existing environment, a folder under
.envs/ lists what is in it. A folder's name holds the digest of all that it is made
from, and environment.json is written last.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError

from reperf.builds.inside import Contents
from reperf.builds.installed import differing, why_not_as_built
from reperf.builds.site_python import Listed, interpreter_of, look
from reperf.config import Container, SiteEnvironment
from reperf.errors import ReperfError
from reperf.files import sha256, write_whole
from reperf.host import Environment
from reperf.systems import Device, Lock, LockName, System, load_systems

RECORD = "environment.json"  # the file in a build's folder that is written last


@dataclass(frozen=True, eq=False)
class LockBuild:
    """A system's environment from one of its locks, or from another; systems may share one."""

    system: System
    name: LockName
    file: Path | None = None  # a lock that replaces the system's for the versions of its packages

    @property
    def id(self) -> str:
        """The build's name in messages."""
        return self.folder.name if self.file else self._name

    @property
    def _name(self) -> str:
        return self.system.host.id + self._ending

    @property
    def device(self) -> Device:
        """The kind of device that the build trains on."""
        return "cpu" if self.name == "cpu" else "cuda"

    @cached_property
    def folder(self) -> Path:
        """The build's folder, relative to the working folder; another recipe has another folder."""
        return Path(".envs", f"{self._name}-{self.recipe_digest[:8]}")

    @property
    def python(self) -> Path:
        """The Python that starts the build's programs."""
        return self.folder / "bin" / "python"

    @property
    def lock(self) -> Path:
        """The lock file, which names the exact packages."""
        return self.file or self.system.environments / f"{self._name}.txt"

    @property
    def lock_name(self) -> str:
        """The lock as messages and records name it."""
        return str(self.file or self.lock.relative_to(self.system.environments.parent))

    @property
    def settings(self) -> Lock:
        """The Python and the packages that the system asks for."""
        return self.system.host.locks[self.name]

    @property
    def recipe(self) -> list[Path]:
        """The files of its recipe: the lock, and uv's settings if a package is compiled."""
        settings = self.system.host.folder / f"uv{self._ending}.toml"
        return [self.lock, settings] if settings.exists() else [self.lock]

    @cached_property
    def recipe_digest(self) -> str:
        """The SHA-256 of the recipe: equal digests mean equal environments."""
        return _digest_of(self.recipe, repr((self.settings.python, self.settings.packages)))

    @property
    def _ending(self) -> str:
        return "" if self.name == "cpu" else f".{self.name}"


@dataclass(frozen=True, eq=False)
class ImageBuild:
    """A container image for a system, and a folder with what the image lacks."""

    system: System
    container: Container

    @property
    def id(self) -> str:
        own = self.system.image
        other = "" if own and own.reference == self.container.image else self.recipe_digest[:8]
        return "-".join(filter(None, (f"{self.system.id}.image", other)))

    @cached_property
    def folder(self) -> Path:
        """The folder that holds all but the image, relative to the working folder."""
        return Path(".images", f"{self.system.id}-{self.recipe_digest[:8]}")

    @property
    def overlay(self) -> Path:
        """A virtual environment over the image's own Python."""
        return self.folder / "overlay"

    @property
    def python(self) -> Path:
        """The Python that starts the build's programs, inside the container."""
        return self.overlay / "bin" / "python"

    @property
    def recipe(self) -> list[Path]:
        """The file that lists packages which the image may lack; empty without one."""
        lacking = self.system.environments / f"{self.system.id}.overlay.txt"
        return [lacking] if lacking.exists() else []

    @cached_property
    def recipe_digest(self) -> str:
        """The SHA-256 of the recipe, which does not include the engine that runs the image."""
        return _digest_of(self.recipe, self.container.image)


@dataclass(frozen=True, eq=False)
class SiteBuild:
    """An existing environment, and a folder with the list of its packages."""

    system: System
    device: Device
    environment: SiteEnvironment

    @property
    def id(self) -> str:
        asked = repr((self.device, self.environment))
        return f"{self.system.id}.site-{_digest_of((), asked)[:8]}"

    @cached_property
    def folder(self) -> Path:
        """The folder of its record, relative to the working folder."""
        return Path(".envs", f"{self.id}-{self.recipe_digest[:8]}")

    @cached_property
    def python(self) -> Path:
        """The Python that starts the build's programs; a bare name if bash finds it on the PATH."""
        return interpreter_of(self.environment) or Path("python")

    @property
    def recipe(self) -> list[Path]:
        """The files that it is made from: reperf has none."""
        return []

    @cached_property
    def listed(self) -> Listed:
        """Its packages on this machine, as this process saw them first."""
        return look(self.environment, self.system)

    @cached_property
    def recipe_digest(self) -> str:
        """The SHA-256 of its Python's version and of all packages with theirs."""
        return self.listed.digest


Build = LockBuild | ImageBuild | SiteBuild


def _digest_of(files: Iterable[Path], more: str) -> str:
    """The SHA-256 of a text, and of several files' contents."""
    contents = "".join([more, *map(sha256, files)])
    return hashlib.sha256(contents.encode()).hexdigest()


ASKED = ("system", "device", "lock", "lock_file", "container", "environment")
"""The fields of a Run that say in which build it trains."""


def build_of(run: Any) -> Build:  # noqa: ANN401 - a Run, or what else has these fields
    """The build in which a run trains."""
    return build_for(**{name: getattr(run, name) for name in ASKED})


# Planning asks for every run.
@cache
def build_for(
    system: str,
    device: Device,
    *,
    lock: LockName | None = None,
    lock_file: str | None = None,
    container: Container | None = None,
    environment: SiteEnvironment | None = None,
) -> Build:
    """The build that is asked for; a ReperfError says that there is no such lock."""
    known = load_systems()[system]
    if container:
        return ImageBuild(known, container)
    if environment:
        return SiteBuild(known, device, environment)
    file = Path(lock_file) if lock_file else None
    if file and not file.is_file():
        raise ReperfError(
            f"lock: got {lock_file!r}, which does not exist; allowed: a file of exact "
            "versions, as uv pip compile writes it"
        )
    return LockBuild(known, lock or device, file)


def every_lock() -> dict[str, LockBuild]:
    """Every environment that a lock of a system describes, by the name of its folder."""
    builds = [
        LockBuild(system, name)
        for system in load_systems().values()
        for name in system.locks
        if not system.shares
    ]
    return {build.folder.name: build for build in builds}


class Built(Contents):
    """environment.json: what a build holds, and what it was made from."""

    recipe_sha256: str | None = Field(None, description="of all that it was made from")
    built_in: str | None = Field(None, description="the folder that its programs name")
    local_image: str | None = None
    """name or file by which the engine runs the image"""
    fingerprint: str | None = None
    """of the local image's names, sizes and times: unchanged, unchanged image"""

    def write(self, folder: Path) -> None:
        """Write it, whole or not at all."""
        write_whole(folder / RECORD, self.model_dump_json(indent=2) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the record of a build; refused if the build is missing or incomplete."""
        path = folder / RECORD
        try:
            return cls.model_validate_json(path.read_bytes())
        except (FileNotFoundError, ValidationError):
            raise ReperfError(f"{folder}: not built; snakemake --force {path} builds it") from None


def read_environment(build: Build) -> Environment:
    """What a build holds, as run records say it; refused if it is not made."""
    built = Built.read(build.folder)
    return Environment(**built.model_dump(include=set(Environment.model_fields)))


def why_build(build: Build) -> str:
    """Why a build must be made before runs can use it, in one line; "" if it need not."""
    folder = build.folder
    try:
        built = Built.read(folder)
    except ReperfError as error:
        return str(error)
    if built.built_in != str(folder.resolve()):
        return f"{folder}: was built in {built.built_in}, and was moved or copied"
    if built.recipe_sha256 != build.recipe_digest:
        return f"{folder}: was built from another recipe than today's"
    return _why_changed(build, built)


def _why_changed(build: Build, built: Built) -> str:
    if isinstance(build, ImageBuild):
        return _why_not_the_image(build, built)
    if isinstance(build, SiteBuild):
        return why_not_as_found(built, look(build.environment, build.system))
    if not build.python.exists():
        return f"{build.folder}: its Python {build.python.resolve()} is gone"
    return why_not_as_built(build.folder, built.packages)


def why_not_as_found(built: Built, listed: Listed) -> str:
    """Why an environment has other packages than when it was looked into; "" if it has not."""
    assert built.site
    if differ := differing(listed.contents, {**built.packages, "Python": built.python}):
        return f"environment {built.site.named}: has other packages than were planned: {differ}"
    return ""


@cache
def digest_now(build: Build) -> str | None:
    """The digest of a build's image as it is; None for a lock, and where nobody has looked yet."""
    if not isinstance(build, ImageBuild):
        return None
    try:
        built = Built.read(build.folder)
    except ReperfError:
        return None
    assert built.image
    assert built.local_image
    changed = _how_changed(built) == "has changed since"
    return digest_of(Path(built.local_image)) if changed else built.image.digest


def _why_not_the_image(build: ImageBuild, built: Built) -> str:
    """Why an image is not the one that the build was made with; "" if it is."""
    assert built.image
    if built.image.engine != build.container.engine:
        return f"{build.folder}: was built with {built.image.engine}"
    changed = _how_changed(built)
    return f"{build.folder}: its image {built.local_image} {changed}" if changed else ""


def _how_changed(built: Built) -> str:
    """What has become of an image that a build was made with; "" if it is the same."""
    assert built.local_image
    local = Path(built.local_image)
    if built.fingerprint is None:  # the engine keeps it, by its digest
        return ""
    if not local.exists():
        return "is gone"
    return "" if fingerprint_of(local) == built.fingerprint else "has changed since"


def digest_of(image: Path) -> str:
    """`sha256:` and the SHA-256 of an image file, or of a folder's files and links.

    Of a folder, names, kinds, permissions and contents count. Times do not, nor do folders
    themselves and Python's bytecode: engines make mount points, and programs leave bytecode.
    """
    if not image.is_dir():
        return f"sha256:{sha256(image)}"
    digest = _digest_of_facts(
        (path, status.st_mode, _content_of(image / path, status))
        for path, status in _files_in(image)
    )
    return f"sha256:{digest}"


def fingerprint_of(image: Path) -> str:
    """A SHA-256 that changes when an image does, of what can be seen without reading contents."""
    files = _files_in(image) if image.is_dir() else [("", image.stat())]
    return _digest_of_facts(
        (path, status.st_mode, status.st_size, status.st_mtime_ns) for path, status in files
    )


def _digest_of_facts(facts: Iterable[tuple[object, ...]]) -> str:
    """The SHA-256 of facts about files; repr() writes names that are not UTF-8 unambiguously."""
    digest = hashlib.sha256()
    for of_file in facts:
        digest.update(f"{of_file!r}\n".encode())
    return digest.hexdigest()


def _files_in(folder: Path | str, below: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """The files and links of a folder, by their names below it, in order."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = below + entry.name
            if not entry.is_dir(follow_symlinks=False):
                yield name, entry.stat(follow_symlinks=False)
            elif entry.name != "__pycache__":
                yield from _files_in(entry.path, f"{name}/")


def _content_of(path: Path, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return str(path.readlink())
    return sha256(path) if stat.S_ISREG(status.st_mode) else ""
