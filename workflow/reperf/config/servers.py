"""The parameter servers beside the trainers of an entry: its word `servers`."""

from typing import Annotated

from pydantic import Field

from reperf.faults import Model
from reperf.values import MOST_PROCESSES, Number

MOST_SERVERS = 14
"""On a node: each needs a port of its own, of the sixteen that a Slurm job has."""


class Servers(Model):
    """Parameter servers, which `topology` does not count."""

    per_node: Annotated[Number, Field(ge=1, le=MOST_SERVERS)] = Field(
        1, description="how many on each node"
    )
    threads: Annotated[Number, Field(ge=1, le=MOST_PROCESSES)] = Field(
        1, description="CPU threads of each"
    )

    @property
    def name(self) -> str:
        """What names them in paths, such as "servers-1" or "servers-2x4"."""
        return f"servers-{self.per_node}" + (f"x{self.threads}" if self.threads > 1 else "")

    @property
    def title(self) -> str:
        """What tables and figures call them, such as "2 servers a node, 4 threads each"."""
        servers = f"{self.per_node} server{'s' * (self.per_node > 1)} a node"
        return servers + (f", {self.threads} threads each" if self.threads > 1 else "")

    @property
    def cpus(self) -> int:
        """Those that they take on each node."""
        return self.per_node * self.threads
