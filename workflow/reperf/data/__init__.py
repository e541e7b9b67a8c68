"""Data in, files of records out: kinds of data, a folder each, and what all kinds share.

A kind is a folder here with two modules: `keys`, of the configuration, and `kind`, what can be done
with it. Only `kinds`, which plans and scripts ask, knows the configuration.
"""

from pathlib import Path

KINDS = tuple(sorted(path.parent.name for path in Path(__file__).parent.glob("*/kind.py")))
"""The names of all kinds: in the configuration, and of the folders."""
