"""The published reports, made again: their tables, and where their numbers contradict each other.

The facts are in data/published/, one row per published number; README.md there explains the
columns. None of it was measured by reperf, and nothing that was is mixed in.
"""

from reperf.published.discrepancies import Discrepancy, discrepancies
from reperf.published.published_tables import (
    PublishedTable,
    epochs_beside,
    load_tables,
    published_for,
    published_without_size,
)

__all__ = [
    "Discrepancy",
    "PublishedTable",
    "discrepancies",
    "epochs_beside",
    "load_tables",
    "published_for",
    "published_without_size",
]
