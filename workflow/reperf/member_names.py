"""What files in an archive are called, and what they may be called: one rule to write and read.

A name is a path below the archive's top that means the same file wherever it is unpacked, and that
fits on one line of a manifest. Colons are allowed: logs are often named by the time of day.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from reperf.errors import ReperfError

MANIFEST = "manifest-sha256.txt"
"""In the form of `sha256sum`, so that `sha256sum -c` checks an unpacked archive."""
CONFIG = "config.json"
CELLS = "cells.json"
METADATA = "ro-crate-metadata.json"
README = "README.txt"
PAGE = "report.html"
CHECK = "check.csv"  # the division that gives the number of each run
REPERF = "#reperf"
"""The entity of the metadata that says which version of reperf made the archive."""
SOURCES = Path("from")

LONGEST_PART = 230
"""Bytes: file systems allow 255, and a file has a longer name while it is being written."""
LONGEST_NAME = 2000  # bytes: Linux allows 4,095, including the folder that it is unpacked to
ALLOWED = (
    f"printed names of up to {LONGEST_PART} bytes each, joined by /, without \\ and without .."
)

_DRIVE = re.compile(r"[A-Za-z]:")


def fault_of_name(name: str) -> str | None:
    """Why no file in an archive may have this name; None if it may."""
    outside = any(part in ("", ".", "..") for part in name.split("/")) or _DRIVE.match(name)
    if outside or "\\" in name or not name.isprintable():
        return f"leaves the archive or cannot be a name; allowed: {ALLOWED}"
    size = len(name.encode())
    longest = max(len(part.encode()) for part in name.split("/"))
    if longest > LONGEST_PART or size > LONGEST_NAME:
        return f"is too long a name for an archive; allowed: {ALLOWED}"
    return None


def check_once(names: Iterable[str]) -> None:
    """Refuse names of which one appears twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ReperfError(f"{shown(name)} appears twice; allowed: each member once")
        seen.add(name)


def shown(name: str) -> str:
    """A name as messages quote it, with invisible characters escaped."""
    return repr(name if len(name) <= 300 else f"{name[:300]}…")
