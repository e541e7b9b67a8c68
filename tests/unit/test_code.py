"""Rules rerun for the code that they use, and for no other."""

import ast
from pathlib import Path

import pytest
from reperf.building.code import PACKAGE, SCRIPTS, closure, code_of


def names(script: str) -> set[str]:
    root = PACKAGE.parent
    return {Path(path).resolve().relative_to(root).as_posix() for path in code_of(script)}


def test_a_script_stands_for_all_that_it_imports():
    assert {
        "scripts/measure.py",
        "reperf/measuring/measure.py",
        "reperf/logs/facts.py",
        "reperf/errors.py",
        "reperf/logs/formats/mllog.py",
    } <= names("measure")


def test_code_that_a_result_does_not_need_does_not_count():
    assert not {
        "reperf/drawing/figures.py",
        "reperf/training/launch.py",
        "reperf/training/train.py",
    } & names("measure")


def test_a_package_stands_for_what_it_takes_from_its_modules():
    whole = {f"reperf/config/{path.name}" for path in (PACKAGE / "config").glob("*.py")}
    assert whole - names("measure") == {"reperf/config/page.py"}


def test_a_module_stands_for_its_package_too():
    assert {"reperf/measuring/__init__.py", "reperf/systems/__init__.py"} <= names("measure")


def test_a_package_that_looks_for_its_modules_stands_for_all_of_them():
    formats = {
        f"reperf/logs/formats/{path.name}" for path in (PACKAGE / "logs/formats").glob("*.py")
    }
    assert formats <= names("measure")
    assert not formats & names("summarise")


def test_figures_decide_no_number():
    drawing = {f"reperf/drawing/{path.name}" for path in (PACKAGE / "drawing").glob("*.py")}
    assert drawing <= names("draw_figures")
    for script in ("convert", "measure", "summarise", "join_tables"):
        assert not drawing & names(script)


def test_a_package_stands_for_the_data_beside_its_code():
    templates = {path.name for path in (PACKAGE / "report").rglob("*.j2")}
    assert templates
    assert templates <= {Path(name).name for name in names("write_report")}


@pytest.mark.parametrize("script", sorted(path.stem for path in SCRIPTS.glob("*.py")))
def test_only_files_that_are_there_are_named(script: str):
    assert all(Path(path).is_file() for path in code_of(script))


def imported(source: Path) -> set[str]:
    """What Python's own parser says that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{source}: a relative import"
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def found(source: Path) -> set[str]:
    """What the library finds that a file imports."""
    names: set[str] = set()
    closure([source], lambda name: names.add(name) or [])
    return names


@pytest.mark.parametrize(
    "source",
    sorted(PACKAGE.parent.rglob("*.py")),
    ids=lambda source: source.relative_to(PACKAGE.parent).as_posix(),
)
def test_no_import_is_missed(source: Path):
    assert imported(source) <= found(source)


def test_an_import_is_seen_however_it_is_written(tmp_path: Path):
    source = tmp_path / "source.py"
    source.write_text(
        "import one, two.three as four\n"
        "from five import (  # noqa\n    six as seven,\n    eight,\n)\n"
        "def function():\n    from nine.ten import eleven\n"
    )
    assert imported(source) <= found(source)
