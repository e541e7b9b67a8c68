"""What each kind of data is, and how its sets are converted to files of records.

A kind is a package here: it says which keys a set has in the configuration, and what can be done
with a set. Its module `convert` makes and converts sets; only the jobs that do so import it.
"""

from pathlib import Path

__all__ = ["KIND_NAMES"]

KIND_NAMES = tuple(sorted(path.parent.name for path in Path(__file__).parent.glob("*/convert.py")))
"""The names of all kinds: in the configuration, and of the packages."""
