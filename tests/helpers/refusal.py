"""How a test is skipped where it cannot run, and how it asks for a refusal in one line."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest
from reperf.errors import ReperfError


def cannot_run(need: str) -> NoReturn:
    """Skip the test and say what it needs; CI has all of it, and there the test fails.

    Args:
        need: what is not there, and why, or what installs it.
    """
    if os.environ.get("CI") == "true":
        pytest.fail(f"needs {need}")
    pytest.skip(f"cannot run here: it needs {need}; CI has that, and runs it")


@contextmanager
def refused_in_one_line(start: str) -> Iterator[pytest.ExceptionInfo[ReperfError]]:
    """Within this, something is refused; the refusal is one line that begins with `start`."""
    with pytest.raises(ReperfError) as refusal:
        yield refusal
    assert str(refusal.value).startswith(start)
    assert len(str(refusal.value).splitlines()) == 1
