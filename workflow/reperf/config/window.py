"""The measured iterations."""

from pydantic import Field

from reperf.config.words import MOST_ITERATIONS, Model, Number


class Window(Model):
    """The measured iterations."""

    warmup: Number = Field(20, ge=0, le=MOST_ITERATIONS, description="iterations before the window")
    measured: Number = Field(100, ge=1, le=MOST_ITERATIONS, description="iterations in the window")

    @property
    def first(self) -> int:
        """The iteration whose end starts the clock."""
        return self.warmup

    @property
    def last(self) -> int:
        """The iteration whose end stops the clock."""
        return self.warmup + self.measured
