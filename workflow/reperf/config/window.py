"""The measured iterations."""

from pydantic import Field

from reperf.config.words import MOST_ITERATIONS
from reperf.faults import Model
from reperf.values import Number

FEWEST_LINES = 50
"""In a window of trainers that keep their own time: between two of them lies 2 % of it."""


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

    def lines(self, print_every: int) -> int:
        """How often trainers that keep their own time print, so that windows can lie side by side.

        These begin and end with printed iterations, of which FEWEST_LINES shall lie in each.

        Args:
            print_every: iterations between two log lines, as asked for.

        Returns:
            The same, or the largest of its divisors that prints so often; 1 if none does.
        """
        most = min(print_every, max(1, self.measured // FEWEST_LINES))
        return next(every for every in range(most, 0, -1) if print_every % every == 0)

    def check(self, iterations: int, print_every: int) -> None:
        """Refuse a window whose ends a run does not print.

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
