"""How a test waits: it asks again and again, and never guesses how long something takes."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Something = TypeVar("Something")


def wait_until(condition: Callable[[], Something], what: str, seconds: float = 120) -> Something:
    """Wait until a condition gives something, which is returned."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {seconds:g} s in vain for {what}"
        time.sleep(0.05)
    return found


def wait_for_text(folder: Path, log: str, pattern: str, seconds: float = 600) -> re.Match:
    """Wait until a log in a folder, or one of several by a pattern of paths, holds a pattern."""

    def find() -> re.Match | None:
        texts = (file.read_text() for file in folder.glob(log))
        return next((found for text in texts if (found := re.search(pattern, text))), None)

    return wait_until(find, f"{pattern!r} in {log}", seconds)
