"""The workflow file that framework teams copy: what its step that compares does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.helpers.report_tables import written_report
from tests.helpers.small_benchmark import ROOT

EXAMPLE = ROOT / "docs/examples/benchmark.yml"
STEPS = {
    step.get("name"): step
    for step in yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))["jobs"]["compare"]["steps"]
}


def compare(folder: Path) -> subprocess.CompletedProcess:
    """Run the step as CI does, in a clone's folder; `gh` notes what it is called with."""
    programs = folder / ".venv/bin"
    programs.mkdir(parents=True)
    (programs / "reperf").symlink_to(Path(sys.executable).with_name("reperf"))
    (folder / "gh").write_text('#!/bin/sh\necho "$@" > called\n')
    (folder / "gh").chmod(0o755)
    given = {"THRESHOLD": "1%", "PULL_REQUEST": "7", "GITHUB_REPOSITORY": "a/b"}
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", STEPS["Compare"]["run"]],
        cwd=folder,
        env=os.environ | given | {"PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


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


def test_bad_input_fails_without_a_comment(tmp_path):
    written_report(tmp_path / "main")
    answer = compare(tmp_path)
    assert answer.returncode == 1
    assert "reperf: results: no such file or folder" in answer.stderr
    assert not (tmp_path / "called").exists()


def test_without_results_of_main_nothing_is_compared(tmp_path):
    written_report(tmp_path, 0.9)
    assert compare(tmp_path).returncode == 0
    assert not (tmp_path / "called").exists()


def test_a_report_is_begun_and_estimated_as_the_page_says(tmp_path):
    reperf = Path(sys.executable).with_name("reperf")
    for words in (
        ["config", "init", "benchmark/report.yaml"],
        ["estimate", "--devices", "8", "--configfile", "benchmark/report.yaml"],
    ):
        (tmp_path / "benchmark").mkdir(exist_ok=True)
        answer = subprocess.run(
            [reperf, *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert answer.returncode == 0, answer.stderr
