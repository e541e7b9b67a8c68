"""Where reperf's own files lie beside its code: systems, locks, workloads, published numbers."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_IN_A_WHEEL = _PACKAGE / "clone"

ROOT = _IN_A_WHEEL if _IN_A_WHEEL.is_dir() else _PACKAGE.parents[1]
"""A clone of reperf's repository, or what a wheel holds of one, at the same places below it."""
