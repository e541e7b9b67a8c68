"""What Snakemake does not tell its rules: what a call asks for, and from which files."""

import os
from collections.abc import Iterable
from typing import Any

from reperf.layout import RUN_RECORD

NEWEST = "9.27"
"""The newest Snakemake that reperf is tested with."""


def warning_of_version(version: str) -> str:
    """What to say of a Snakemake that is newer than the newest one tested; "" if it is not."""
    series = [tuple(map(int, one.split(".")[:2])) for one in (version, NEWEST)]
    if series[0] <= series[1]:
        return ""
    return f"Snakemake is {version} here; reperf is tested with versions up to {NEWEST}"


def trained_anew(workflow: Any, runs: Iterable[str]) -> set[str]:  # noqa: ANN401 - Snakemake's own
    """The runs that a call trains even if a try has come to its end: by --forcerun and the like.

    Reads Snakemake's settings, because a job does not learn whether somebody has asked for it.

    Args:
        runs: their folders.
    """
    asked = workflow.dag_settings
    forced = {*asked.forcerun, *(asked.targets if asked.forcetargets else ())}
    every = asked.forceall or "train" in forced
    return {run for run in runs if every or f"{run}/{RUN_RECORD}" in forced}


def configfiles(workflow: Any) -> list[str]:  # noqa: ANN401
    """The configuration files, the later over the earlier; by short paths below this folder."""
    over = workflow.overwrite_configfiles
    own = (file for file in workflow.configfiles if file not in over)
    paths = [(os.path.relpath(file), str(file)) for file in (*own, *over)]
    return [path if here.startswith("..") else here for here, path in paths]
