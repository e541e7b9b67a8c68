"""What somebody probably asked for who named a target that no rule makes."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import PurePath
from typing import TYPE_CHECKING

from reperf.layout import (
    ALL_MEASUREMENTS,
    ALL_SUMMARY,
    ARCHIVE,
    COMPLETE,
    PAGES,
    RUN_FOLDER,
    RUN_RECORD,
    tables_of,
)
from reperf.nearest import LONGEST, nearest
from reperf.root import ROOT
from reperf.text import printable

if TYPE_CHECKING:
    from reperf.config import Suite

CLOSE = 0.85
"""How alike two paths must be, of 1; most share their folders already."""
_RUN = ("results", "runs")


def not_a_target(target: str, why: str, suites: "Mapping[str, Suite]", profile: str | None) -> str:
    """One line for somebody who asked for what is not made: what is, and what was meant.

    Args:
        target: what was asked for.
        why: why it is not made.
        suites: those of the report, by name.
        profile: the one that Snakemake was called with.
    """
    meant = meant_target(target, suites)
    listed = f"snakemake{f' --profile {profile}' if profile else ''} --summary"
    return (
        f"reperf: {printable(target)}: {why}; allowed: the name of a rule, or a file that {listed} "
        f"lists{f'; did you mean {meant}?' if meant else ''}"
    )


def meant_target(target: str, suites: "Mapping[str, Suite]") -> str | None:
    """The file of a report, or the rule, that is most like a mistyped one; None if none is like it.

    Args:
        target: what no rule makes.
        suites: those of the report, by name.
    """
    if "/" not in target and (meant := nearest(target, _rules())):
        return meant
    parts = PurePath(target[: 4 * LONGEST]).parts
    if parts[:2] == _RUN:
        return _meant_run(parts[2:], suites)
    made = [*PAGES, ALL_MEASUREMENTS, ALL_SUMMARY, COMPLETE]
    for name, suite in suites.items():
        made += [ARCHIVE.format(suite=name), *tables_of(name), *suite.figures]
    return next(iter(get_close_matches(target[: 4 * LONGEST], made, n=1, cutoff=CLOSE)), None)


def _meant_run(parts: tuple[str, ...], suites: "Mapping[str, Suite]") -> str | None:
    """The record of the run that is most like `<suite>/<entry>/<topology>/<repeat>/...`."""
    if len(parts) < 4 or not (suite := suites.get(nearest(parts[0], suites) or "")):
        return None
    entry = nearest(parts[1], [one.id for one in suite.entries])
    topology = nearest(parts[2], suite.topologies)
    if entry is None or topology is None:
        return None
    repeat = parts[3] if parts[3] in map(str, range(1, suite.repeats + 1)) else 1
    folder = RUN_FOLDER.format(suite=suite.name, entry=entry, topology=topology, repeat=repeat)
    return f"{folder}/{RUN_RECORD}"


def _rules() -> list[str]:
    """The names of all rules."""
    files = sorted((ROOT / "workflow/rules").glob("*.smk"))
    return [name for file in files for name in re.findall(r"^rule (\w+):", file.read_text(), re.M)]
