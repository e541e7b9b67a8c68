"""The kinds of data that there are: those with a folder here.

The configuration does not import this: the code of all kinds would then count as every rule's.
"""

from importlib import import_module

from reperf.data import KINDS as NAMES
from reperf.data.kind import Kind

KINDS: dict[str, Kind] = {name: import_module(f"reperf.data.{name}.kind").KIND for name in NAMES}
