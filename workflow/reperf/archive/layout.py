"""Where things lie in the archive of a suite; `reperf.archive.suite` says what they are."""

from pathlib import Path

CONFIG = "config.json"
CELLS = "cells.json"
METADATA = "ro-crate-metadata.json"
REPERF = "#reperf"
"""The entity of the metadata that says which version of reperf made the archive."""
SOURCES = Path("from")


def tables_of(suite: str) -> list[str]:
    """The tables of a suite: its measurements, its summary."""
    return [f"results/suites/{suite}/{table}.csv" for table in ("measurements", "summary")]


def figures_of(suite: str) -> list[str]:
    """The figures of a suite."""
    return [
        f"figures/{suite}-{figure}.{suffix}"
        for figure in ("throughput", "speedup")
        for suffix in ("svg", "png")
    ]
