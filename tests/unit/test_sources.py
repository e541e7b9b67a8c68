"""Rules rerun for the code that they use, and for no other."""

from pathlib import Path

import pytest
from reperf.sources import PACKAGE, SCRIPTS, code_of


def names(script: str) -> set[str]:
    root = PACKAGE.parent
    return {Path(path).resolve().relative_to(root).as_posix() for path in code_of(script)}


def test_a_script_stands_for_all_that_it_imports():
    assert {
        "scripts/measure.py",
        "reperf/measuring/measure.py",
        "reperf/facts.py",
        "reperf/errors.py",
        "reperf/logs/mllog.py",
    } <= names("measure")


def test_code_that_a_result_does_not_need_does_not_count():
    assert not {
        "reperf/figures.py",
        "reperf/training/launch.py",
        "reperf/training/train.py",
    } & names("measure")


def test_a_package_stands_for_all_of_its_files():
    templates = {path.name for path in (PACKAGE / "report").rglob("*.j2")}
    assert templates
    assert templates <= {Path(name).name for name in names("write_report")}


@pytest.mark.parametrize("script", sorted(path.stem for path in SCRIPTS.glob("*.py")))
def test_only_files_that_are_there_are_named(script: str):
    assert all(Path(path).is_file() for path in code_of(script))
