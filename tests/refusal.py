"""What a test does on a machine that lacks what it needs."""

import os
from typing import NoReturn

import pytest


def cannot_run(missing: str) -> NoReturn:
    """Skip the test and say what the machine lacks; CI has all of it, and there the test fails.

    Args:
        missing: what the test needs, and why it is not there or what installs it.
    """
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI lacks what the test needs: {missing}")
    pytest.skip(f"this machine lacks what the test needs: {missing}")
