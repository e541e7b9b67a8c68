"""docs/log-formats.md knows every format, and the way it shows of adding one works."""

import re
import sys
from pathlib import Path

import pytest
from reperf.cli import main
from reperf.logs import formats as package
from reperf.logs.format import Format, facts_by
from reperf.logs.formats import formats

from docs.make_tables import docstrings, with_tables
from tests.unit.logs import written as templates
from tests.unit.logs.asking import check, measure_one
from tests.unit.logs.written import STYLES, Style, rate, written

PAGE = (Path(__file__).parents[3] / "docs" / "log-formats.md").read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_formats():
    assert with_tables(PAGE) == PAGE
    lines, methods = PAGE.split("## What the window rule")
    for name in formats():
        assert f"\n| `{name}` | `" in lines
        assert f"\n| `{name}` | " in methods


def test_every_module_shows_a_line_cites_its_source_and_says_its_method():
    for name, log_format in formats().items():
        words = docstrings()[name]
        assert re.search("^    +.", words, re.MULTILINE)
        assert "\nSource: " in words or log_format.system == "mlperf"  # whose module says it
        assert log_format.published is None or log_format.published.__doc__


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"pattern": "it {ITERATIONS}"}, r"x: \{ITERATIONS\} is no part of a pattern.*"),
        ({"pattern": "it (?P<iteratoin>1)"}, "x: nothing reads a group named iteratoin.*"),
    ],
)
def test_a_misspelt_name_in_a_format_is_an_error_when_it_is_imported(fields, fault):
    with pytest.raises(ValueError, match=fault):
        Format(name="x", system="x", marker=b"it ", **fields)
    with pytest.raises(KeyError, match="global_bacth"):
        facts_by(global_bacth=r"(\d+)")


class TestThePageIsFollowedWordForWord:
    """Its code blocks go where the paragraph in front of each says, by the last name in it."""

    SECTION = PAGE[PAGE.index("## Adding a format") :]
    BLOCK = re.compile(r"((?:[^\n]+\n)+)\n```\w*\n(.*?)```", re.DOTALL)

    @pytest.fixture(autouse=True)
    def followed(self, tmp_path, monkeypatch):
        for paragraph, content in self.BLOCK.findall(self.SECTION):
            if names := re.findall(r"`([\w./-]+)`", paragraph):
                path = tmp_path / names[-1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        added = str(tmp_path / "workflow/reperf/logs/formats")
        monkeypatch.setattr(package, "__path__", [*package.__path__, added])
        formats.cache_clear()
        docstrings.cache_clear()
        yield
        sys.modules.pop(f"{package.__name__}.trainer", None)
        monkeypatch.undo()
        formats.cache_clear()
        docstrings.cache_clear()

    def test_its_log_is_measured_as_it_shows(self, capsys):
        [command] = re.findall(r"^    reperf (measure .+)", self.SECTION, re.MULTILINE)
        assert main(command.split()) == 0
        [(_, shown_there)] = [
            block for block in self.BLOCK.findall(self.SECTION) if command in block[0]
        ]
        assert capsys.readouterr().out.strip() == shown_there.strip()

    def test_its_template_makes_logs(self, tmp_path, monkeypatch):
        monkeypatch.setattr(templates, "TEMPLATES", tmp_path / "tests/data/logs/written")
        monkeypatch.setitem(STYLES, "trainer", Style.of("trainer"))
        measured = measure_one(written("trainer"), facts=STYLES["trainer"].facts)
        check(measured, format="trainer", throughput=float(rate("trainer")))
        assert "\n| `trainer` | `" in with_tables(PAGE)
