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

    def check(self, iterations: int, print_every: int) -> None:
        """Refuse a window whose ends a run does not print.

        Args:
            iterations: of a run.
            print_every: iterations between two log lines.

        Raises:
            ValueError: the window ends after the last iteration, or one of its ends is not printed.
        """
        if self.last > iterations:
            raise ValueError(
                f"window: ends at iteration {self.last}, after the last of "
                f"{iterations} iterations; allowed: warmup + measured <= iterations"
            )
        for name, edge in (("warmup", self.first), ("warmup + measured", self.last)):
            if edge % print_every:
                raise ValueError(
                    f"window: {name} is {edge}, which is not printed; allowed: multiples of "
                    f"print_every ({print_every})"
                )
