"""Mistakes in the program, one at a time: some test that is named beside each must fail.

They stand in mutations.toml. A mistake that no test notices is a survivor, and its promise is kept
by nobody: write the test, mostly a row just inside a threshold or just outside.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.helpers.small_benchmark import ROOT

TABLE = Path(__file__).with_name("mutations.toml").read_text(encoding="utf-8")
MUTATIONS = tomllib.loads(TABLE)["mutation"]
NOT_COPIED = (".git", ".venv", ".envs", ".snakemake", "__pycache__", "site")


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout, which a mutation may spoil."""
    folder = tmp_path_factory.mktemp("mutated") / "reperf"
    shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    if (ROOT / ".envs").exists():
        (folder / ".envs").symlink_to(ROOT / ".envs")
    return folder


@pytest.mark.weekly
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one["promise"][:60])
def test_a_mistake_is_noticed(mutation: dict, copied: Path, tmp_path: Path):
    file = copied / mutation["file"]
    right = file.read_text(encoding="utf-8")
    assert right.count(mutation["was"]) == 1, f"{mutation['file']}: {mutation['was']!r}"
    file.write_text(right.replace(mutation["was"], mutation["becomes"]), encoding="utf-8")
    options = ("-x", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'tests'}")
    try:
        answer = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *mutation["tests"]],
            cwd=copied,
            env=os.environ
            | {"PYTHONPATH": f"{copied}/workflow", "PYTEST_ADDOPTS": "", "TRUE_CHANCE": ""},
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    finally:
        file.write_text(right, encoding="utf-8")
    assert answer.returncode == 1, f"survived: {mutation['promise']}\n{answer.stdout[-2000:]}"
