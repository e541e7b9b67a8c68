"""What a report's hardware decides, once it is known."""

from typing import Self

from pydantic import Field, model_validator

from reperf.config.words import SystemId, Text, Topology, Whole
from reperf.faults import Model
from reperf.systems import BuildKind, LockName, Precision, load_systems


class Hardware(Model):
    """What the hardware decides: which builds run there, and in which precisions."""

    locks: dict[SystemId, LockName] = Field(
        {}, description="the lock that a system uses, where its first does not run there"
    )
    ways: dict[SystemId, BuildKind] = Field(
        {}, description="where a system gets its framework, if its preferred way does not run there"
    )
    unfit: dict[SystemId, dict[BuildKind, Text]] = Field(
        {}, description="systems that do not run there: from a lock or an image, and why"
    )
    lacking: dict[SystemId, dict[Precision, Text]] = Field(
        {}, description="precisions in which a system cannot train there, and why"
    )
    topologies: dict[Topology, Text] = Field(
        {}, description="topologies that this machine is too small for, and why"
    )
    shared: dict[Topology, Whole] = Field(
        {}, description="topologies whose devices share this machine's CPUs, and how many these are"
    )

    @model_validator(mode="after")
    def _locks_are_known(self) -> Self:
        for system, name in self.locks.items():
            if name not in (known := load_systems()[system].locks_for("cuda")):
                allowed = ", ".join(known) or "none"
                raise ValueError(f"locks.{system}: got {name}; allowed: {allowed}")
        return self
