"""By true chance: odd logs, kills of the workflow, and edits of what a report stands on."""

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
@pytest.mark.parametrize("program", ["kills.py 60 {}", "edits.py 40 {}", "edited_logs.py 10000 {}"])
def test_chance_finds_no_fault(program: str, tmp_path: Path):
    asked = program.format(secrets.randbelow(2**32)).split()
    print(*asked)  # the seed, of which pytest tells where it fails
    answer = subprocess.run(
        [sys.executable, *asked],
        check=False,
        cwd=ROOT / "tests/fuzz",
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
