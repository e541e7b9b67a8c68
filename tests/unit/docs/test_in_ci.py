"""The workflow file that framework teams copy: what its step that compares does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.helpers.report_tables import written_report
from tests.helpers.small_benchmark import ROOT

REPERF = Path(sys.executable).with_name("reperf")
WORKFLOW = yaml.safe_load((ROOT / "docs/examples/benchmark.yml").read_text(encoding="utf-8"))
[COMPARE] = [
    step["run"] for step in WORKFLOW["jobs"]["compare"]["steps"] if step.get("name") == "Compare"
]


def compare(folder: Path) -> subprocess.CompletedProcess:
    """Run the step as CI does, in a clone's folder; `gh` notes what it is called with."""
    programs = folder / ".venv/bin"
    programs.mkdir(parents=True)
    (programs / "reperf").symlink_to(REPERF)
    (folder / "gh").write_text('#!/bin/sh\necho "$@" > called\n')
    (folder / "gh").chmod(0o755)
    given = {"THRESHOLD": "1%", "PULL_REQUEST": "7", "GITHUB_REPOSITORY": "a/b"}
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", COMPARE],
        cwd=folder,
        env=os.environ | given | {"PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("factor", "unit", "status", "words"),
    [
        (1.0, "images/s", 0, "1 same"),
        (0.9, "images/s", 1, "1 slower"),
        (1.0, "tokens/s", 0, "1 not comparable"),
    ],
)
def test_a_slower_pull_request_fails_with_a_comment(tmp_path, factor, unit, status, words):
    written_report(tmp_path / "main")
    written_report(tmp_path, factor, unit=unit)
    answer = compare(tmp_path)
    assert answer.returncode == status, answer.stderr
    assert words in (tmp_path / "comment.md").read_text()
    assert (tmp_path / "called").read_text().startswith("pr comment 7 --repo a/b --body-file com")
    assert (tmp_path / "junit.xml").exists() and (tmp_path / "comparison.html").exists()
    assert ("::warning::no cell" in answer.stdout) == (unit == "tokens/s")


@pytest.mark.parametrize(
    ("there", "status", "why"),
    [("main", 1, "reperf: results: no such file or folder"), (".", 0, "")],
    ids=["bad input", "no results of main"],
)
def test_what_cannot_be_compared_has_no_comment(tmp_path, there, status, why):
    written_report(tmp_path / there)
    answer = compare(tmp_path)
    assert (answer.returncode, why in answer.stderr) == (status, True)
    assert not (tmp_path / "called").exists()


def test_a_report_is_begun_and_estimated_as_the_page_says(tmp_path):
    (tmp_path / "benchmark").mkdir()
    for words in (
        "config init benchmark/report.yaml",
        "estimate --devices 8 --configfile benchmark/report.yaml",
    ):
        subprocess.run([REPERF, *words.split()], cwd=tmp_path, check=True)
