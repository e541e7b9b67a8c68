"""Which pipelines a system, or a variant of it, can train by."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from reperf.faults import Model


class Pipelines(Model):
    """What it asks of the replicas of stages, and of micro-batches."""

    replicas: Literal["any", "as the first or one", "equal"] = Field(
        "any", description="how many each stage may have"
    )
    micro_batches: Literal["none", "any", "at least stages", "multiple of stages"] | None = Field(
        None,
        description="into how many it can cut a batch, which it cuts into as many as there are "
        "stages unless it is told otherwise; left out: not said here",
    )
    updates: Literal["after each iteration", "after each batch"] = Field(
        "after each iteration", description="when a stage changes its weights"
    )
    stages_of_a_device: int = Field(1, ge=1, description="of how many each device has a replica")

    def why_not(
        self, pipeline: Sequence[int], micro_batches: int | None, batch_size: int | None
    ) -> str | None:
        """What it lacks to train by a pipeline, such as "stages 2 + 1"; None if nothing.

        Args:
            pipeline: the replicas of each stage.
            micro_batches: as configured; None: as many as there are stages.
            batch_size: None: not known yet.
        """
        allowed = {"equal": {pipeline[0]}, "as the first or one": {pipeline[0], 1}}
        if not set(pipeline) <= allowed.get(self.replicas, set(pipeline)):
            said = " + ".join(map(str, pipeline))
            return f"stages {said}; allowed: {_REPLICAS[self.replicas]}"
        if self.micro_batches is None:
            return None
        if self.micro_batches == "none":
            return f"{micro_batches} micro-batches; allowed: none" if micro_batches else None
        count, stages = micro_batches or len(pipeline), len(pipeline)
        fits = {
            "at least stages": count >= stages,
            "multiple of stages": count % stages == 0,
        }
        if not fits.get(self.micro_batches, True):
            wanted = self.micro_batches.replace("stages", str(stages))
            return f"{count} micro-batches; allowed: {wanted}"
        if batch_size is not None and batch_size % count:
            return f"{count} micro-batches of a batch of {batch_size}; allowed: what divides it"
        return None


_REPLICAS = {
    "equal": "as many replicas of each",
    "as the first or one": "of each as many replicas as of the first, or one",
}
