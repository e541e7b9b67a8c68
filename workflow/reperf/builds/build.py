"""What a build is made from, and where it lies."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path

from reperf.config import Container, Run
from reperf.files import sha256 as sha256_of_file
from reperf.systems import Device, Lock, LockName, System, load_systems


@dataclass(frozen=True, eq=False)
class LockBuild:
    """A system's environment from one of its locks; systems may share one."""

    system: System
    name: LockName

    @property
    def id(self) -> str:
        """What names it in paths and messages."""
        return self.system.host.id + self._ending

    @property
    def device(self) -> Device:
        """What it trains on."""
        return "cpu" if self.name == "cpu" else "cuda"

    @cached_property
    def folder(self) -> Path:
        """Where it lies, relative to the working folder: another recipe is another folder."""
        return Path(".envs", f"{self.id}-{self.recipe_digest[:8]}")

    @property
    def python(self) -> Path:
        """What starts its programs."""
        return self.folder / "bin" / "python"

    @property
    def lock(self) -> Path:
        """The exact packages."""
        return self.system.environments / f"{self.id}.txt"

    @property
    def settings(self) -> Lock:
        """The Python and the packages that are asked for."""
        return self.system.host.locks[self.name]

    @property
    def recipe(self) -> list[Path]:
        """What it is made from: the lock, and uv's settings if a package is compiled."""
        settings = self.system.host.folder / f"uv{self._ending}.toml"
        return [self.lock, settings] if settings.exists() else [self.lock]

    @cached_property
    def recipe_digest(self) -> str:
        """The SHA-256 of what it is made from: equal digests, equal environments."""
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
        return f"{self.system.id}.image"

    @cached_property
    def folder(self) -> Path:
        """Where all but the image lies, relative to the working folder."""
        return Path(".images", f"{self.system.id}-{self.recipe_digest[:8]}")

    @property
    def overlay(self) -> Path:
        """A virtual environment over the image's own Python."""
        return self.folder / "overlay"

    @property
    def python(self) -> Path:
        """What starts its programs, inside the container."""
        return self.overlay / "bin" / "python"

    @property
    def recipe(self) -> list[Path]:
        """The packages that the image may lack."""
        lacking = self.system.environments / f"{self.system.id}.overlay.txt"
        return [lacking] if lacking.exists() else []

    @cached_property
    def recipe_digest(self) -> str:
        """The SHA-256 of what it is made from; the engine that runs it is none of that."""
        return _digest_of(self.recipe, self.container.image)


Build = LockBuild | ImageBuild


def _digest_of(files: Iterable[Path], more: str) -> str:
    """The SHA-256 of a text, and of several files' contents."""
    contents = "".join([more, *map(sha256_of_file, files)])
    return sha256(contents.encode()).hexdigest()


def build_of(run: Run) -> Build:
    """The build in which a run trains."""
    return _build_of(run.system, run.lock or run.device, run.container)


# Planning asks for every run.
@cache
def _build_of(system: str, lock: LockName, container: Container | None) -> Build:
    known = load_systems()[system]
    return LockBuild(known, lock) if container is None else ImageBuild(known, container)


def every_lock() -> dict[str, LockBuild]:
    """Every environment that a lock describes, by the name of its folder."""
    builds = [
        LockBuild(system, name)
        for system in load_systems().values()
        for name in system.locks
        if not system.shares
    ]
    return {build.folder.name: build for build in builds}
