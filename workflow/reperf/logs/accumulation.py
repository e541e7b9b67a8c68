"""How many batches a step is, from a progress bar that counts batches beside lines of steps.

    Iteration:  14%|#4        | 166/1147 [00:30<02:54,  5.62it/s]

Source: github.com/tqdm/tqdm, tqdm/std.py: a bar is drawn every tenth of a second at most, so that a
fast one is behind.
"""

import re
import sys
from collections import deque
from collections.abc import Sequence
from math import ceil, floor
from typing import NamedTuple

_BAR = re.compile(
    rb"\| {0,20}(\d{1,12})/\d{1,12} \[[\d:]{1,20}<[\d:]{1,20}, {0,20}(\d{1,9}\.\d\d)(it/s|s/it)"
)
_NEAR = 1 << 12
"""How many bytes before a line are searched for a bar."""
_LAG = 2
"""How many batches a bar may differ by from what has been trained when a line is printed."""
_DELAY = 0.5
"""For how many seconds a bar may not have been drawn."""


class Bar(NamedTuple):
    """What a progress bar says."""

    batches: int
    """As many as it has counted."""
    lag: float
    """How many more, or fewer, there may be."""


def newest_bar(text: bytes) -> Bar | None:
    """The newest progress bar in a text; None if there is none."""
    found = deque(_BAR.finditer(text, max(0, len(text) - _NEAR)), maxlen=1)
    if not found:
        return None
    [bar] = found
    rate = float(bar[2])
    per_second = rate if bar[3] == b"it/s" else 1 / rate if rate else 0.0
    return Bar(int(bar[1]), _LAG + _DELAY * per_second)


def batches_per_step(bars: Sequence[tuple[int, Bar]]) -> tuple[int, int] | None:
    """The fewest and the most batches per step that fit what a bar has counted.

    Args:
        bars: the iterations of lines, and the bar before each, in the log's order. A bar begins
            again with each file of samples.

    Returns:
        Both; None if the bars count nothing, or no whole number fits.
    """
    fewest, most = 1, sys.maxsize
    for first, last in _stretches(bars):
        steps, batches = last[0] - first[0], last[1].batches - first[1].batches
        if steps <= 0 or batches <= 0:
            continue
        lag = max(first[1].lag, last[1].lag)
        fewest = max(fewest, ceil((batches - lag) / steps))
        most = min(most, floor((batches + lag) / steps))
    return (fewest, most) if fewest <= most < sys.maxsize else None


def _stretches(
    bars: Sequence[tuple[int, Bar]],
) -> list[tuple[tuple[int, Bar], tuple[int, Bar]]]:
    """The first and the last line of each stretch in which neither steps nor the bar go back."""
    found: list[tuple[tuple[int, Bar], tuple[int, Bar]]] = []
    for bar in bars:
        if found and bar[0] > found[-1][1][0] and bar[1].batches >= found[-1][1][1].batches:
            found[-1] = found[-1][0], bar
        else:
            found.append((bar, bar))
    return found
