"""What a test does on a machine that lacks what it needs."""

import os
from typing import NoReturn

import pytest


def cannot_run(reason: str) -> NoReturn:
    """Skip the test and say what the machine lacks; CI has all of it, and there the test fails."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
