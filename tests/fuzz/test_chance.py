"""The workflow, killed at random moments, and what a report stands on, edited at random."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.small_benchmark import ROOT


@pytest.mark.weekly
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("environments")
@pytest.mark.parametrize(("program", "times"), [("kills.py", 60), ("edits.py", 40)])
def test_chance_finds_no_fault(program: str, times: int, tmp_path: Path):
    asked = [str(ROOT / "tests/fuzz" / program), str(times), str(secrets.randbelow(10**6))]
    print(*asked)  # the seed, of which pytest tells where it fails
    answer = subprocess.run(
        [sys.executable, *asked],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
