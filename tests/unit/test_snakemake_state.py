"""Snakemake's private state is touched in one module."""

import re

import pytest
from reperf.building.code import PACKAGE
from reperf.systems import ROOT

PRIVATE = re.compile(
    r"\bworkflow\.(?!rules\b|smk\b|yaml\b)[a-z_]+"
    r"|\b(_user_kill|forcefiles|finished_jobs|needrun_jobs|dag_settings|overwrite_configfiles)\b"
)
RULES = [ROOT / "Snakefile", *sorted((ROOT / "workflow" / "rules").glob("*.smk"))]


def test_there_are_rules_to_look_at():
    assert len(RULES) > 5


@pytest.mark.parametrize("file", RULES, ids=lambda file: file.name)
def test_no_rule_touches_it(file):
    assert not PRIVATE.findall(file.read_text(encoding="utf-8"))


def test_one_module_of_the_library_touches_it():
    private = re.compile(r"\b(_user_kill|forcefiles|finished_jobs|needrun_jobs|dag_settings)\b")
    files = (path for path in PACKAGE.rglob("*.py") if private.search(path.read_text("utf-8")))
    assert [path.name for path in files] == ["snakemake_state.py"]
