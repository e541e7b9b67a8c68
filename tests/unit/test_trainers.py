"""What is asked of all code that runs inside a framework's environment."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from reperf.systems import SYSTEMS, TRAINERS


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(path, id=str(path))
        for path in (*sorted(TRAINERS.rglob("*.py")), *sorted(SYSTEMS.rglob("*.py")))
    ],
)
def test_the_oldest_python_of_a_framework_can_read_it(source: Path):
    """Python 3.7: the lock's of TensorFlow 1.15. ruff finds more, and tests/systems runs it."""
    ast.parse(source.read_text(encoding="utf-8"), feature_version=(3, 7))


def test_a_process_below_a_limit_takes_no_more_and_says_what_the_limit_counts():
    code = """
from trainers.contract.process import limit_memory, peak_memory
limit_memory(600_000_000)
held = bytearray(200_000_000)
assert 200_000_000 < peak_memory() <= 600_000_000, peak_memory()
try:
    bytearray(500_000_000)
except MemoryError:
    print("full")
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert answer.stdout == "full\n"
