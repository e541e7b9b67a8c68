"""What is installed in an environment, beside its lock and beside what was there before."""

import re
from collections import defaultdict
from collections.abc import Mapping
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
    """Refuse an environment that holds packages which its lock does not have, or in other versions.

    A lock with markers may name a package several times: any of its versions will do, for uv has
    read the markers.

    Args:
        packages: name -> version, as the environment's own Python finds them.
        name: the lock's, for the message.
    """
    locked: dict[str, list[str]] = defaultdict(list)
    for line in lock.read_text(encoding="utf-8").splitlines():
        if match := _LOCKED.match(line):
            locked[_plain_name(match[1])].append(match[2] or "")
    differ = []
    for package, version in sorted(packages.items()):
        allowed = locked.get(_plain_name(package), [])
        # A local part, such as +cpu, counts only where the lock has one.
        public = version.partition("+")[0]
        if not any(not one or _is_same(one, version if "+" in one else public) for one in allowed):
            differ.append(f"{package} {version} for {' or '.join(allowed) or 'none'}")
    if differ:
        raise ReperfError(
            f"{name}: other packages were installed than it locks: {listed(differ, _SHOWN)}; does "
            "a constraint, an override or an index of uv prefer these, or does the lock lack them?"
        )


def why_not_as_built(environment: Path, built: Mapping[str, str]) -> str:
    """Why an environment does not hold the packages that it was built with; "" if it does.

    It is read without its Python, so this may be asked before every run.
    """
    found = {
        _plain_name(package.metadata["Name"]): package.version
        for place in sorted(environment.glob("lib/python*/site-packages"))
        for package in distributions(path=[str(place)])
        if "Name" in package.metadata  # else it is what is left of a package
    }
    if differ := differing(found, built):
        return f"{environment}: has other packages than when it was built: {differ}"
    return ""


def differing(found: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """The packages in which two environments differ, with both versions; "" if in none."""
    found, then = (
        {_plain_name(name): version for name, version in each.items()} for each in (found, wanted)
    )
    differ = [
        f"{name} {found.get(name, 'none')} for {then.get(name, 'none')}"
        for name in sorted({*found, *then})
        if not _is_same(found.get(name, ""), then.get(name, ""))
    ]
    return listed(differ, _SHOWN)


def _plain_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


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
