"""docs/log-formats.md knows every format, and the way it shows of adding one works."""

import re
from importlib import import_module
from pathlib import Path

import pytest
from reperf.logs.format import Format, facts_by
from reperf.logs.formats import formats
from reperf.logs.formats_page import shown, with_tables

from tests.unit.logs.asking import measure_one

PAGE = (Path(__file__).parents[3] / "docs" / "log-formats.md").read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_formats():
    assert with_tables(PAGE) == PAGE
    lines, methods = PAGE.split("## What the window rule")
    for name in formats():
        assert f"\n| `{name}` | `" in lines
        assert f"\n| `{name}` | " in methods


def test_every_module_shows_a_line_cites_its_source_and_says_its_method():
    for name, log_format in formats().items():
        assert shown(name)
        file = "mlperf" if log_format.system == "mlperf" else name.replace("-", "_")
        module = import_module(f"reperf.logs.formats.{file}")
        assert "\nSource: " in module.__doc__
        assert (log_format.published is None) == ("extractor" not in log_format.notes)
        untimed = "duration" not in log_format.line.groupindex
        assert log_format.notes.get("timing") or log_format.clock or untimed


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"pattern": "it {ITERATIONS}"}, r"x: \{ITERATIONS\} is no part of a pattern.*"),
        (
            {"pattern": "it (?P<iteratoin>1)"},
            "x: nothing reads a group named iteratoin.*",
        ),
        (
            {"pattern": "it {ITERATION}", "notes": {"time": "no"}},
            "x: notes has {'time'}",
        ),
    ],
)
def test_a_misspelt_name_in_a_format_is_an_error_when_it_is_imported(fields, fault):
    with pytest.raises(ValueError, match=fault):
        Format(name="x", system="x", marker=b"it ", **fields)
    with pytest.raises(KeyError, match="global_bacth"):
        facts_by(global_bacth=r"(\d+)")


def test_the_format_on_the_page_is_one(monkeypatch):
    namespace: dict = {}
    exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], namespace)
    added = namespace["FORMAT"]
    monkeypatch.setattr("reperf.logs.recognise.formats", lambda: formats() | {added.name: added})
    lines = [
        f"[trainer] it {n} | 128.0 img/s | 2026-01-31 12:00:{n // 4:02d}.{n % 4 * 25:02d}0000"
        for n in range(20, 121, 20)
    ]
    measured = measure_one(lines, facts=(("global_batch", 32),))
    assert (measured.format, measured.throughput) == ("trainer", 128.0)
