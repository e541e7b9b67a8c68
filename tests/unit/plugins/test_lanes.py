"""What a call of the tests shows while they run, and what it says of those that it leaves out."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.helpers.small_benchmark import ROOT
from tests.plugins import bar

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
    (tmp_path / "tests/systems").mkdir(parents=True)
    far = "import a_module_that_is_not_there\n\ndef test_far_away(): ..."
    (tmp_path / "tests/systems/test_far.py").write_text(far)
    plugins = [word for name in ("lanes", "bar") for word in ("-p", f"tests.plugins.{name}")]
    options = ("-c", ROOT / "pyproject.toml", "-p", "no:cacheprovider", f"--confcutdir={tmp_path}")
    words = [*options, *plugins, *processes, "-m", "not (weekly or framework)", tmp_path]
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
    assert [line.split()[:3] for line in told[1:3]] == [
        ["framework", "1", "test"],
        ["weekly", "1", "test"],
    ]
    assert "could not import 'a_module_that_is_not_there'" in told[3]
    assert told[4] == "all of it: make test-all"


def test_the_longest_groups_begin_and_short_tests_come_last(monkeypatch):
    monkeypatch.setattr(bar, "known_seconds", lambda: {"b": 9.0, "c": 4.0, "d": 5.0, "e": 90.0})

    def item(nodeid, group=None, fixture="", folder="unit"):
        mark = SimpleNamespace(args=(group,)) if group else None
        names = {"path": Path("tests", folder, "test_it.py"), "fixturenames": [fixture]}
        return SimpleNamespace(nodeid=nodeid, get_closest_marker=lambda name: mark, **names)

    unit, slow = item("a"), item("d")
    groups = [item("b", "short"), item("c[1]", "long"), item("e", "long"), item("c[2]", "long")]
    first, real = item("f", fixture="finished", folder="workflow"), item("g", folder="workflow")
    items = [unit, real, slow, *groups, first]
    bar.pytest_collection_modifyitems(items)
    short, *long = groups
    assert items == [first, *long, short, slow, real, unit]
