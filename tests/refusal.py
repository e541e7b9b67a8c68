"""What a test does on a machine that lacks what it needs."""

import os
from typing import NoReturn

import pytest


def cannot_run(need: str) -> NoReturn:
    """Skip the test and say what it needs; CI has all of it, and there the test fails.

    Args:
        need: what is not there, and why, or what installs it.
    """
    if os.environ.get("CI") == "true":
        pytest.fail(f"needs {need}")
    pytest.skip(f"needs {need} (never skipped in CI, which has it)")
