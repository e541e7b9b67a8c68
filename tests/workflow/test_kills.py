"""The workflow, killed at some moments; tests/fuzz/kills.py does it as often as one likes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.small_benchmark import ROOT


@pytest.mark.usefixtures("environments")
def test_kills_leave_no_process_and_no_half_file_and_the_next_call_goes_on(tmp_path: Path):
    answer = subprocess.run(
        [sys.executable, ROOT / "tests/fuzz/kills.py", "6", "3"],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        timeout=1500,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
