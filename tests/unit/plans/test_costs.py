"""`reperf plan`: what a report asks for, before anything starts."""

import re
from pathlib import Path

import pytest
import yaml
from reperf.cli import main
from reperf.config import load_report
from reperf.plans.costs import table_of_runs

GPUS_ONLY = {"system": "ngc-tensorflow1", "variants": "xla"}
SUITE = {"workload": "resnet50", "batch_size": 8, "systems": ["pytorch", "mxnet"]}
CONFIG = {
    "title": "A plan",
    "device": "cpu",
    "topologies": ["1n1g"],
    "repeats": 3,
    "time_limit": 1200,
    "memory_limit": 2**32,
    "suites": [
        SUITE | {"name": "one", "precision": "fp32"},
        SUITE | {"name": "two", "precision": "fp32", "systems": [GPUS_ONLY]},
        SUITE | {"name": "three", "precision": "fp32", "systems": ["pytorch"], "time_limit": 36000},
    ],
}


def told(capsys: pytest.CaptureFixture, folder: Path, **changes: object) -> list[str]:
    """What the command says of a report."""
    file = folder / "plan.yaml"
    file.write_text(yaml.safe_dump(CONFIG | changes))
    assert main(["plan", "--configfile", str(file)]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_table_has_a_line_a_suite_in_the_reports_order():
    report = load_report(CONFIG | {"topologies": ["1n2g", "2n8g", "1n1g"], "data": {"parts": 16}})
    suites = {suite.name: suite for suite in report.suites}
    runs = [("three", "pytorch", "1n1g")] * 2
    runs += [("one", entry, "2n8g") for entry in ("pytorch", "mxnet") for _ in range(150)]
    assert list(table_of_runs(runs, suites)) == [
        "suite  systems  1n1g  2n8g  runs  device hours, at most",
        "one          2     -   300   300                  1,600",
        "three        1     2     -     2                     20",
        "all          2     2   300   302                  1,620",
    ]


def test_it_tells_runs_hours_downloads_room_and_what_cannot_run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = told(capsys, tmp_path)
    assert lines[0] == "A plan: 9 runs on cpu"
    assert [line.split()[-2:] for line in lines[3:6]] == [["6", "2"], ["3", "30"], ["9", "32"]]
    rest = "\n".join(lines)
    for system in ("mxnet", "pytorch"):
        pattern = rf"^to download: \d+ packages of {system}\.txt for {system}, up to 1\.9 GiB"
        assert re.search(pattern, rest, re.MULTILINE), rest
    assert re.search(r"^disk: up to \d\.\d GiB more; \S+ GiB are free here$", rest, re.MULTILINE)
    assert "memory: up to 4.0 GiB of a node, 4.0 GiB a process" in lines
    assert [line for line in lines if line.startswith("unsupported: 1 cell of ngc-tensorflow1: ")]
    assert not (tmp_path / "results").exists()


def test_it_tells_what_the_call_would_refuse(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = told(capsys, tmp_path, data={"images": "nowhere"})
    assert lines[-1].startswith("refused as it is: ")
    assert "nowhere" in lines[-1]


def test_a_file_that_is_none_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "--configfile", "missing.yaml"]) == 1
    assert capsys.readouterr().err == "reperf: missing.yaml: No such file or directory\n"
