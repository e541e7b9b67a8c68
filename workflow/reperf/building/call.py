"""What a call of Snakemake asks for, of which rules learn nothing."""

from typing import Any


def asks_for(workflow: Any, rule: str, path: str) -> bool:  # noqa: ANN401 - Snakemake's own
    """Whether a call makes a file even if it is there: by its own name, or with --forcerun.

    Snakemake's settings, because a job does not learn whether somebody has asked for it.
    """
    asked = workflow.dag_settings
    forced = asked.forcerun | (asked.targets if asked.forcetargets else frozenset())
    return bool(asked.forceall) or not forced.isdisjoint((rule, path))
