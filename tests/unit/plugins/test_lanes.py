"""What a call of the tests shows while they run, and what it says of those that it leaves out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.small_benchmark import ROOT

TESTS = """
import pytest

@pytest.mark.weekly
def test_that_is_left_out(): ...

@pytest.mark.parametrize("number", range(3))
def test_what_is_promised(number): ...

def test_what_is_broken():
    assert False

def test_what_cannot_run_here():
    pytest.importorskip("a_module_that_is_not_there")
"""


@pytest.mark.parametrize("processes", [(), ("-n", "1")], ids=["one process", "xdist"])
def test_a_call_names_what_it_tests_what_failed_and_what_it_has_not_tested(
    tmp_path: Path, processes: tuple[str, ...]
):
    (tmp_path / "test_it.py").write_text(TESTS)
    plugins = [word for name in ("lanes", "bar") for word in ("-p", f"tests.plugins.{name}")]
    options = ("-c", ROOT / "pyproject.toml", "-p", "no:cacheprovider", f"--confcutdir={tmp_path}")
    words = [*options, *plugins, *processes, "-m", "not weekly", tmp_path]
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    lines = answer.stdout.splitlines()
    assert answer.returncode == 1
    assert any(line.endswith(": what is promised") for line in lines), answer.stdout
    assert any(line.startswith("FAILED ") and ": what is broken (" in line for line in lines)
    told = lines[next(i for i, line in enumerate(lines) if " not tested here " in line) :]
    assert told[1].split()[:3] == ["weekly", "1", "test"]
    assert "could not import 'a_module_that_is_not_there'" in told[2]
    assert told[3] == "all of it: make test-all"
