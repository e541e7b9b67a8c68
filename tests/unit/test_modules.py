"""Each module of the library has a name of its own; lint-imports checks who imports whom."""

from reperf.building.code import PACKAGE
from reperf.data import KIND_NAMES


def test_no_two_modules_have_one_name():
    """Commands may: each is called as what it calls; kinds of data have one interface."""
    alike = {PACKAGE / "commands", *(PACKAGE / "data" / kind for kind in KIND_NAMES)}
    names = [path.stem for path in PACKAGE.rglob("[!_]*.py") if path.parent not in alike]
    assert sorted(set(names)) == sorted(names)
