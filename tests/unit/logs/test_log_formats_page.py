"""docs/log-formats.md knows every format, and the way it shows of adding one works."""

import re
from importlib import import_module
from pathlib import Path

from asking import measure_one
from reperf.logs.formats import formats

PAGE = (Path(__file__).parents[3] / "docs" / "log-formats.md").read_text(encoding="utf-8")


def test_every_format_is_on_the_page():
    lines, methods = PAGE.split("## What the window rule")
    for name in formats():
        assert f"`{name}`" in lines, name
        assert f"`{name}`" in methods, name


def test_every_module_shows_a_line_and_cites_its_source():
    for name in formats():
        words = import_module(f"reperf.logs.formats.{name.replace('-', '_')}").__doc__
        assert "\nSource: " in words
        assert re.search(r"\n    \S", words) or "are shown in" in words


def test_the_format_on_the_page_is_one(monkeypatch):
    code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    namespace: dict = {}
    exec(code, namespace)
    added = namespace["FORMAT"]
    monkeypatch.setattr("reperf.logs.recognise.formats", lambda: formats() | {added.name: added})
    lines = [
        f"[trainer] it {n} | 128.0 img/s | 2026-01-31 12:00:{n // 4:02d}.{n % 4 * 25:02d}0000"
        for n in range(20, 121, 20)
    ]
    measured = measure_one(lines, facts=(("global_batch", 32),))
    assert (measured.format, measured.throughput) == ("trainer", 128.0)
