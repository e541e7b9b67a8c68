"""Which tests share a process."""

import pytest

GROUPS = ("archive", "data", "report")
"""Packages whose tests share fixtures that take many seconds: one process makes them once."""


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.parent.name in GROUPS:
        item.add_marker(pytest.mark.xdist_group(item.path.parent.name))
