"""No module of the library needs itself, by however many others and wherever it imports them."""

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from reperf.building.code import PACKAGE
from reperf.data import KIND_NAMES

from tests.unit.building.test_code import imported


def modules_below(folder: Path) -> dict[str, Path]:
    """Full name -> file; a package's is its `__init__.py`."""
    files = {
        path.relative_to(folder.parent).with_suffix("").parts: path for path in folder.rglob("*.py")
    }
    return {".".join(parts).removesuffix(".__init__"): path for parts, path in files.items()}


def imported_by(name: str, path: Path, modules: dict[str, Path]) -> set[str]:
    """What a module imports, in functions and for types too.

    To import a module of another package is to run that package's `__init__.py` first.
    """
    found: set[str] = set()
    for one in imported(path) & modules.keys():
        parts = one.split(".")
        above = {".".join(parts[:depth]) for depth in range(1, len(parts))}
        found |= {one} | {package for package in above if not f"{name}.".startswith(f"{package}.")}
    return found - {name}


def circle_among(imports: dict[str, set[str]]) -> list[str]:
    """The modules of a circle, each imported by the one before it; none if there is no circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1][::-1]
    return []


def imports_below(folder: Path) -> dict[str, set[str]]:
    modules = modules_below(folder)
    return {name: imported_by(name, path, modules) for name, path in modules.items()}


def test_no_module_needs_itself_and_the_doctor_no_report():
    imports = imports_below(PACKAGE)
    assert circle_among(imports) == []
    doctor = [name for name in imports if name.startswith("reperf.doctor")]
    assert not [name for name in doctor for one in imports[name] if "reperf.report" in one]


def test_no_two_modules_have_one_name():
    """Commands may: each is called as what it calls; kinds of data have one interface."""
    alike = {PACKAGE / "commands", *(PACKAGE / "data" / kind for kind in KIND_NAMES)}
    names = [path.stem for path in PACKAGE.rglob("[!_]*.py") if path.parent not in alike]
    assert sorted(set(names)) == sorted(names)


def test_a_circle_is_found_however_it_closes(tmp_path: Path):
    for name, text in {
        "__init__": "",
        "one": "from lib.package.two import f",
        "package/__init__": "",
        "package/two": "def f():\n    import lib.other.three",
        "other/__init__": "from lib.one import g",
        "other/three": "",
    }.items():
        path = tmp_path / "lib" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    circle = circle_among(imports_below(tmp_path / "lib"))
    assert set(circle) == {"lib.one", "lib.package.two", "lib.other"}
