"""Every check has a code, which is documented and known to those that raise it."""

import re
from pathlib import Path

import pytest
from reperf.logs.checks import CHECKS, Refused
from reperf.logs.facts import Facts

DOCS = Path(__file__).parents[3] / "docs"
PAGE = "\n".join(
    (DOCS / name).read_text(encoding="utf-8") for name in ("measuring.md", "refusals.md")
)


def test_the_documentation_lists_every_code():
    tables = re.findall(r"(?m)^\| code \|.*\n\|---.*\n((?:\|.*\n)+)", PAGE)
    for refuses, table in zip((True, False), tables, strict=True):
        first = (row.split("|")[1] for row in table.splitlines())
        codes = {code for cell in first for code in re.findall(r"`([a-z-]+)`", cell)}
        assert codes == {check.code for check in CHECKS if check.refuses == refuses}


def test_a_misspelt_code_or_fact_is_a_fault():
    with pytest.raises(AssertionError, match="whole"):
        Refused("whole", "a hole")
    with pytest.raises(KeyError, match="global_bacth"):
        Facts().add("the log", [("global_bacth", 8)])
