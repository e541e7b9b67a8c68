"""The kinds of data: the packages here.

They are not imported by name: the code of all kinds would count as every rule's.
"""

from importlib import import_module

from reperf.data import KIND_NAMES
from reperf.data.kind import Kind

KINDS: dict[str, type[Kind]] = {
    name: import_module(f"reperf.data.{name}").KIND for name in KIND_NAMES
}
