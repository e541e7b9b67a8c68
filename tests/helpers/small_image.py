"""A container image without a registry: this machine's own Python, unpacked in a folder."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from uv import find_uv_bin

TORCH, NUMPY = "2.12.1", "2.3.5"
"""Others than the locks'."""
PYTHON = Path("/usr/bin/python3")
"""Debian's own: its packages lie apart from those that uv or pyenv installed."""
_PACKAGES = "usr/lib/python3/dist-packages"
_EMPTY_FOLDERS = ("dev", "etc", "mnt", "proc", "run", "sys", "tmp", "var/tmp")
_EMPTY_FILES = ("etc/hosts", "etc/resolv.conf", "etc/passwd", "etc/group")


def make_image(folder: Path, packages: Iterable[str] = ()) -> Path:
    """Make an image that holds a shell, a Python, and packages that are installed into it.

    Args:
        packages: as pip names them, from the package index alone.
    """
    program = PYTHON.resolve()
    library = Path("/usr/lib", program.name)
    for name in ("bin", "lib", "lib64", "sbin"):
        (folder / "usr" / name).mkdir(parents=True)
        (folder / name).symlink_to(f"usr/{name}")
    for name in _EMPTY_FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in _EMPTY_FILES:
        (folder / name).touch()
    shutil.copytree(
        library,
        folder / library.relative_to("/"),
        symlinks=True,
        ignore=shutil.ignore_patterns("test"),
    )
    shutil.copy(program, folder / "usr/bin")
    (folder / "usr/bin/python3").symlink_to(program.name)
    shutil.copy(Path("/bin/sh").resolve(), folder / "usr/bin/sh")
    needed = _shared_libraries()
    for binary in (program, Path("/bin/sh"), *(library / "lib-dynload").glob("*.so")):
        needed |= _libraries_of(binary)
    for path in needed:
        target = folder / "usr" / path.relative_to("/usr" if path.is_relative_to("/usr") else "/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path.resolve(), target)
    (folder / _PACKAGES).mkdir(parents=True)
    if listed := list(packages):
        _install(folder, listed)
    return folder


def link_image(image: Path, folder: Path, packages: Iterable[str] = ()) -> Path:
    """Make an image of another one's files, linked and not copied, and of more packages."""
    shutil.copytree(image, folder, symlinks=True, copy_function=os.link)
    if listed := list(packages):
        _install(folder, listed)
    return folder


def _install(image: Path, packages: Iterable[str]) -> None:
    install = [find_uv_bin(), "pip", "install", "--quiet", "--python", str(PYTHON)]
    install += ["--no-config", "--no-sources", "--target", str(image / _PACKAGES)]
    subprocess.run([*install, *packages], check=True, stdout=sys.stderr)


def _libraries_of(binary: Path) -> set[Path]:
    """The libraries that a program needs, and theirs."""
    said = subprocess.run(["ldd", binary], check=True, capture_output=True, text=True).stdout
    return {Path(path) for path in re.findall(r"(/\S+) \(0x", said)}


def _shared_libraries() -> set[Path]:
    """The libraries that nearly every wheel needs: those of C, C++ and the compiler."""
    owners = ["dpkg", "-L", "libc6", "libgcc-s1", "libstdc++6"]
    said = subprocess.run(owners, check=True, capture_output=True, text=True).stdout
    return {Path(line) for line in said.splitlines() if re.search(r"/[^/]+\.so[.\d]*$", line)}
