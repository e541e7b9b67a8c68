"""What is installed in an environment, beside its lock and beside what was there before."""

import re
from collections import defaultdict
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path

from packaging.utils import canonicalize_name, canonicalize_version

from reperf.errors import ReperfError
from reperf.text import listed

# A package in a lock; hashes, options and comments do not match. Without "==", any version will do.
_LOCKED = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^]]*\])?\s*(?:==\s*([^\s;,#\\]+))?")
_SHOWN = 3  # packages that a message names


def check_locked(packages: Mapping[str, str], lock: Path, name: str) -> None:
    """Refuse an environment that holds packages which its lock does not have, or in other versions.

    A lock with markers may name a package several times: any of its versions will do, for uv has
    read the markers. `packages` are name -> version; `name` is the lock's, for the message.
    """
    locked: dict[str, list[str]] = defaultdict(list)
    for line in lock.read_text(encoding="utf-8").splitlines():
        if match := _LOCKED.match(line):
            locked[canonicalize_name(match[1])].append(match[2] or "")
    differ = []
    for package, version in sorted(packages.items()):
        allowed = locked.get(canonicalize_name(package), [])
        # A local part, such as +cpu, counts only where the lock has one.
        same = {canonicalize_version(each) for each in (version, version.partition("+")[0])}
        if not any(not one or canonicalize_version(one) in same for one in allowed):
            differ.append(f"{package} {version} for {' or '.join(allowed) or 'none'}")
    if differ:
        raise ReperfError(
            f"{name}: other packages were installed than it locks: {listed(differ, _SHOWN)}; does "
            "a constraint, an override or an index of uv prefer these, or does the lock lack them?"
        )


def why_not_as_built(environment: Path, built: Mapping[str, str]) -> str:
    """Why an environment no longer holds its packages; "" if it does. Asked before every run."""
    found = {
        package.metadata["Name"]: package.version
        for place in sorted(environment.glob("lib/python*/site-packages"))
        for package in distributions(path=[str(place)])
        if "Name" in package.metadata  # else it is what is left of a package
    }
    if differ := differing(found, built):
        return f"{environment}: has other packages than when it was built: {differ}"
    return ""


def differing(found: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """The packages in which two environments differ, with both versions; "" if in none."""
    now, then = (
        {canonicalize_name(name): version for name, version in each.items()}
        for each in (found, wanted)
    )
    differ = [
        f"{name} {now.get(name, 'none')} for {then.get(name, 'none')}"
        for name in sorted({*now, *then})
        if canonicalize_version(now.get(name, "")) != canonicalize_version(then.get(name, ""))
    ]
    return listed(differ, _SHOWN)
