"""The examples in the docstrings of the library give what they show."""

import doctest
from importlib import import_module

import pytest
from reperf.building.code import PACKAGE

from tests.helpers.small_benchmark import ROOT

MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_true(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
