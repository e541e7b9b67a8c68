"""What a wheel holds beside the packages: schemas, systems, locks, trainers, published numbers.

They lie as in a clone, below reperf/clone: reperf.layout. An editable install has the clone itself.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HELD = (
    *("data/published", "envs"),
    *("workflow/schemas", "workflow/systems", "workflow/trainers", "workflow/workloads"),
)


class Clone(BuildHookInterface):
    """Called by hatchling."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folders to a wheel."""
        if version == "standard":
            for name in HELD:
                build_data["force_include"][name] = f"reperf/clone/{name}"
