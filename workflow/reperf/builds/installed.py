"""What is installed in an environment, beside its lock and beside what was there before."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path

from reperf.errors import ReperfError
from reperf.text import listed

# A package in a lock; hashes, options and comments do not match. Without "==", any version will do.
_LOCKED = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^]]*\])?\s*(?:==\s*([^\s;,#\\]+))?")
_VERSION = re.compile(r"v?((?:\d+!)?\d+(?:\.\d+)*)([^+]*)(\+.*)?")
_SHOWN = 3
"""Packages that a message names."""


def check_locked(packages: Mapping[str, str], lock: Path, name: str) -> None:
    """Check that an environment holds what its lock says, and nothing else.

    A lock with markers may name a package several times: any of its versions will do, for uv has
    read the markers.

    Args:
        packages: name -> version, as the environment's own Python finds them.
        lock: the file.
        name: the file's, for the message.

    Raises:
        ReperfError: names the packages whose versions differ, or which the lock does not have.
    """
    locked: dict[str, list[str]] = defaultdict(list)
    for line in lock.read_text(encoding="utf-8").splitlines():
        if match := _LOCKED.match(line):
            locked[_plain_name(match[1])].append(match[2] or "")
    differ = []
    for package, version in sorted(packages.items()):
        allowed = locked.get(_plain_name(package), [])
        if not any(not one or _is_locked_as(one, version) for one in allowed):
            differ.append(f"{package} {version} for {' or '.join(allowed) or 'none'}")
    if differ:
        raise ReperfError(
            f"{name}: other packages were installed than it locks: {listed(differ, _SHOWN)}; does "
            "a constraint, an override or an index of uv prefer these, or does the lock lack them?"
        )


def why_not_as_built(environment: Path, built: Mapping[str, str]) -> str:
    """Why an environment does not hold what it was built with; "" if it does.

    It is read without its Python, so this may be asked before every run.

    Args:
        environment: its folder.
        built: name -> version of what was there when it was built.
    """
    found = {
        _plain_name(name): version
        for place in sorted(environment.glob("lib/python*/site-packages"))
        for name, version in _installed(place)
    }
    if differ := differing(found, built):
        return f"{environment}: has other packages than when it was built: {differ}"
    return ""


def differing(found: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """The packages in which two environments differ, with both versions; "" if in none.

    Args:
        found, wanted: name -> version.
    """
    found, then = (
        {_plain_name(name): version for name, version in each.items()} for each in (found, wanted)
    )
    differ = [
        f"{name} {found.get(name, 'none')} for {then.get(name, 'none')}"
        for name in sorted({*found, *then})
        if not _is_same(found.get(name, ""), then.get(name, ""))
    ]
    return listed(differ, _SHOWN)


def _installed(place: Path) -> Iterator[tuple[str, str]]:
    """The name and the version of each package in a folder, without what is left of others."""
    for package in distributions(path=[str(place)]):
        if "Name" in package.metadata:
            yield package.metadata["Name"], package.version


def _plain_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_locked_as(locked: str, installed: str) -> bool:
    """Whether a version is the locked one; its local part counts only where the lock has one."""
    return _is_same(locked, installed if "+" in locked else installed.partition("+")[0])


def _is_same(first: str, second: str) -> bool:
    return _plain_version(first) == _plain_version(second)


def _plain_version(version: str) -> tuple[str, str, str]:
    """A version's release, its suffix and its local part, spelt in one way as PEP 440 has it.

    Case, separators, and zeros at the end of a release make no difference.
    """
    if not (match := _VERSION.fullmatch(version.strip().lower())):
        return version, "", ""
    release, suffix, local = (part or "" for part in match.groups())
    return re.sub(r"(?:\.0+)+$", "", release), re.sub(r"[-_.]", "", suffix), local
