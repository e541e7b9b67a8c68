"""Data in, files of records out: a folder for each kind of data, and what all kinds share.

The folder of a kind has a module `kind`: the keys of its sets in the configuration, and what can be
done with a set. The modules that make and convert sets are imported only by the jobs that do so.
"""

from pathlib import Path

__all__ = ["KIND_NAMES"]

KIND_NAMES = tuple(sorted(path.parent.name for path in Path(__file__).parent.glob("*/kind.py")))
"""The names of all kinds: in the configuration, and of the folders."""
