"""The axis on which the page's panels place runs."""

from collections.abc import Iterable
from typing import NamedTuple, Self

STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_STEPS_WIDE = 2.5
"""How many steps of its ticks an axis may be wide, so that labels fit into half a page."""


class Scale(NamedTuple):
    """An axis from `low` to `high`, in shares of the fastest median."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, shares: Iterable[float]) -> Self:
        """An axis that holds all shares, and 1, with a margin for the dots."""
        values = [1.0, *shares]
        low, high = min(values), max(values)
        margin = 0.04 * max(high - low, 0.02)
        low, high = max(0.0, low - margin), high + margin
        step = next((one for one in STEPS if (high - low) / one < MOST_STEPS_WIDE), STEPS[-1])
        first = -int(-low / step // 1)
        ticks = (round(k * step, 6) for k in range(first, int(high / step) + 1))
        return cls(low, high, tuple(ticks))

    def place(self, share: float) -> str:
        """Where a share stands, in percent of the axis's width."""
        return f"{100 * (share - self.low) / (self.high - self.low):.2f}"

    def width(self, low: float, high: float) -> str:
        """How long the way from one share to another is, likewise."""
        return f"{100 * (high - low) / (self.high - self.low):.2f}"
