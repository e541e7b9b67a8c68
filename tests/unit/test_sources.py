"""Rules rerun for the library code that they use, and for no other."""

from pathlib import Path

from reperf.sources import PACKAGE, library


def names(*modules: str) -> set[str]:
    return {str(Path(path).resolve().relative_to(PACKAGE)) for path in library(*modules)}


def test_a_module_stands_for_what_it_imports_too():
    assert {"measure.py", "facts.py", "errors.py", "logs/mllog.py"} <= names("reperf.measure")


def test_code_that_a_result_does_not_need_does_not_count():
    assert not {"figures.py", "launch.py", "training.py"} & names("reperf.measure")


def test_a_package_stands_for_all_of_its_files():
    formats = {str(path.relative_to(PACKAGE)) for path in (PACKAGE / "logs").glob("*.py")}
    assert formats <= names("reperf.logs")


def test_only_files_of_the_library_are_named():
    assert all(Path(path).is_file() for path in library("reperf.training"))
    assert all(Path(path).resolve().is_relative_to(PACKAGE) for path in library("reperf.training"))
