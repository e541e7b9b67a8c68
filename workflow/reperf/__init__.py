"""reperf: rerun deep-learning training benchmarks and trace every number to its log.

For notebooks, the package itself offers `measure`, `rank`, `plot`, `read_measurements` and
`read_summary`: docs/notebooks.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reperf.notebook import measure, plot, rank, read_measurements, read_summary

__version__ = "1.0.0"
__all__ = ["measure", "plot", "rank", "read_measurements", "read_summary"]


def __getattr__(name: str) -> object:
    """Import what a notebook asks for; commands and rules need none of it."""
    if name in __all__:
        return getattr(import_module("reperf.notebook"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
