"""Builds from container images: the image is pulled once, and what it lacks lies beside it.

The image's own Python starts everything. Where the image lacks a package that a trainer needs, a
virtual environment over that Python (the overlay) has it.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

from reperf.builds import RECORD, Built, ImageBuild, digest_of, fingerprint_of
from reperf.builds.engines import REFERENCE, engine_called, parse_reference, start_in
from reperf.builds.inside import BuildPython, Contents, modules_of
from reperf.builds.steps import do
from reperf.config import Container
from reperf.errors import ReperfError
from reperf.host import Image

_FIND_PYTHON = """\
for name in python3 python /opt/conda/bin/python /usr/local/bin/python3; do
    if command -v $name; then exit 0; fi
done
echo 'neither python3 nor python is in it' >&2
exit 1
"""
REQUIREMENT = re.compile(r"(?P<package>[\w.-]+)==\S+(?:\s*;[^#]*)?\s*#\s*(?P<module>[\w.]+)\s*")
_PATHS = ("/", "./", "../", "~")
_SUFFIXES = (".sif", ".simg", ".sqfs", ".sqsh", ".squashfs")
"""Of images in files, which no registry's image has."""
# A parent's code is not run: NVIDIA's packages share a parent that has none.
_LOOK = """\
import importlib.machinery, sys
def is_there(path, name, *inside):
    found = importlib.machinery.PathFinder.find_spec(name, path)
    return bool(found) and (not inside or is_there(found.submodule_search_locations, *inside))
print(*(name for name in sys.argv[1:] if not is_there(None, *name.split("."))))
"""


def image_file(container: Container) -> list[str]:
    """The file of an image, if it is one, as a rule's input."""
    return [str(Path(container.image).expanduser())] if is_file(container.image) else []


def build_image(build: ImageBuild, run: Sequence[str] = ()) -> None:
    """Pull a system's image, see what is in it, and add what it lacks.

    Args:
        run: the command that starts programs where the engine is; empty: on this machine.
    """
    container, folder = build.container, build.folder
    engine = engine_called(container.engine)
    version = engine.version(run)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).unlink(missing_ok=True)  # until it is made, it does not count
    check_image(container)
    if is_file(container.image):
        local = str(_file_of(container))
        digest = digest_of(Path(local))
    else:
        local, digest = engine.pull(container.image, folder, run)
    opened = _Opened(build, local, tuple(run))
    opened.do(["sh", "-c", "exit 0"], f"does not start with {engine.program}")
    python = opened.do(["sh", "-c", _FIND_PYTHON], "has no Python").split()[-1]
    _, contents = opened.look(python)
    if build.overlay.exists():
        shutil.rmtree(build.overlay)
    venv = ["-m", "venv", "--system-site-packages", "--without-pip", str(build.overlay)]
    opened.do([python, *venv], "its Python makes no virtual environment")
    if lacking := _lacking(opened):
        _install(build, lacking, contents)
        compiled = [str(build.python), "-m", "compileall", "-q", str(_packages(build, contents))]
        opened.do(compiled, "its Python cannot compile what was installed beside it")
    started, contents = opened.look(str(build.python), modules_of(build.system))
    started.start_trainers(build.system, contents)
    Built(
        recipe_sha256=build.recipe_digest,
        built_in=str(folder.resolve()),
        local_image=local,
        fingerprint=fingerprint_of(Path(local)) if local.startswith("/") else None,
        image=Image(
            reference=container.image, digest=digest, engine=engine.name, engine_version=version
        ),
        **contents.model_dump(exclude_unset=True),
    ).write(folder)


def is_file(image: str) -> bool:
    """Whether an image is named by a path, and not by a reference into a registry."""
    path = Path(image)
    return image.startswith(_PATHS) or path.suffix in _SUFFIXES or path.exists()


def check_image(container: Container, place: str = "images") -> None:
    """Refuse an image that cannot be meant, without asking a registry or an engine."""
    if not is_file(container.image):
        parse_reference(container.image, place)
    elif not _file_of(container).exists():
        raise ReperfError(
            f"{place}: got {container.image!r}, and there is no such file or folder; "
            f"allowed: {REFERENCE}"
        )


def _file_of(container: Container) -> Path:
    return Path(container.image).expanduser().absolute()


@dataclass(frozen=True)
class _Opened:
    """An image in which commands can be run."""

    build: ImageBuild
    local: str
    run: tuple[str, ...] = ()

    def start(self, command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        """How to run a command: the engine's, and all of its variables."""
        start = start_in(self.build, command, folder=Path.cwd(), variables={}, image=self.local)
        words = [word.replace("{node_rank}", "0") for word in start.command]
        return [*self.run, *start.srun_options, *words], {**os.environ, **start.variables}

    def do(self, command: Sequence[str], trouble: str) -> str:
        words, variables = self.start(command)
        return do(words, f"{self.build.container.image}: {trouble}", variables)

    def look(self, python: str, modules: Iterable[str] = ()) -> tuple[BuildPython, Contents]:
        """Look into the image with one of its Pythons; refused without the framework."""
        words, variables = self.start([python])
        started = BuildPython(words, self.build.container.image, variables)
        return started, started.contents_with(self.build.system.framework, modules)


def _lacking(opened: _Opened) -> list[str]:
    """The packages of the overlay's list that the image has under no name, as the list says."""
    wanted: dict[str, list[str]] = {}
    build = opened.build
    for path in build.recipe:
        for line in path.read_text(encoding="utf-8").splitlines():
            if match := REQUIREMENT.fullmatch(line):
                wanted.setdefault(match["module"], []).append(line)
    missing = opened.do([str(build.python), "-c", _LOOK, *wanted], "cannot be looked into")
    return [line for module in missing.split() for line in wanted[module]]


def _install(build: ImageBuild, lines: Sequence[str], contents: Contents) -> None:
    """Put packages into the overlay from outside, so that the container needs no network."""
    listed = build.folder / "overlay.txt"
    listed.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    libc = re.search(r"\d+\.(\d+)", contents.libc)
    known = min(40, int(libc[1])) if libc else 17
    wheels = known if known >= 28 else 17
    install = [find_uv_bin(), "pip", "install", "--python", sys.executable, "--no-deps"]
    install += ["--only-binary", ":all:", "--target", str(_packages(build, contents))]
    install += ["--python-version", contents.python]
    install += ["--python-platform", f"{contents.machine}-manylinux_2_{wheels}"]
    do(
        [*install, "--requirement", str(listed)],
        trouble=f"{build.recipe[0].name}: cannot be installed",
    )


def _packages(build: ImageBuild, contents: Contents) -> Path:
    minor = ".".join(contents.python.split(".")[:2])
    return build.overlay / "lib" / f"python{minor}" / "site-packages"
