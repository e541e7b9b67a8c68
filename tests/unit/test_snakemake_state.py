"""Snakemake's private state is touched in one module."""

import re

import pytest
from reperf.building.code import PACKAGE
from reperf.systems import ROOT

NAMES = "_user_kill|forcefiles|finished_jobs|needrun_jobs|dag_settings|overwrite_configfiles"
PRIVATE = re.compile(rf"\b({NAMES})\b")
IN_RULES = re.compile(rf"\bworkflow\.(?!rules\b|smk\b|yaml\b)[a-z_]+|{PRIVATE.pattern}")
RULES = [ROOT / "Snakefile", *sorted((ROOT / "workflow" / "rules").glob("*.smk"))]


def test_there_are_rules_to_look_at():
    assert len(RULES) > 5


@pytest.mark.parametrize("file", RULES, ids=lambda file: file.name)
def test_no_rule_touches_it(file):
    assert not IN_RULES.findall(file.read_text(encoding="utf-8"))


def test_one_module_of_the_library_touches_it():
    files = (path for path in PACKAGE.rglob("*.py") if PRIVATE.search(path.read_text("utf-8")))
    assert [path.name for path in files] == ["snakemake_state.py"]
