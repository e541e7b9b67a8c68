"""`reperf plan`: what a report asks for, before anything starts."""

import re
from collections.abc import Callable
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


@pytest.fixture
def told(tmp_path, capsys, monkeypatch) -> Callable[..., list[str]]:
    """What the command says of a report."""
    monkeypatch.chdir(tmp_path)

    def plan(**changes: object) -> list[str]:
        Path("plan.yaml").write_text(yaml.safe_dump(CONFIG | changes))
        assert main(["plan", "--configfile", "plan.yaml"]) == 0
        assert not Path("results").exists()
        return capsys.readouterr().out.splitlines()

    return plan


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


def test_it_tells_runs_hours_downloads_room_and_what_cannot_run(told):
    lines = told()
    assert lines[0] == "A plan: 9 runs on cpu"
    assert [line.split()[-2:] for line in lines[3:6]] == [["6", "2"], ["3", "30"], ["9", "32"]]
    rest = "\n".join(lines)
    for system in ("mxnet", "pytorch"):
        pattern = rf"^to download: \d+ packages of {system}\.txt for {system}, up to 1\.9 GiB"
        assert re.search(pattern, rest, re.MULTILINE), rest
    assert re.search(r"^disk: up to \d\.\d GiB more; \S+ GiB are free here$", rest, re.MULTILINE)
    assert "memory: up to 4.0 GiB of a node, 4.0 GiB a process" in lines
    assert [line for line in lines if line.startswith("unsupported: 1 cell of ngc-tensorflow1: ")]


def test_it_tells_the_hours_of_a_search_which_may_take_four_time_limits(told):
    suite = CONFIG["suites"][2] | {"batch_size": "largest"}
    assert "1 search for the largest batch: 40 device hours, at most" in told(suites=[suite])


def test_it_tells_what_the_call_would_refuse(told):
    *_, last = told(data={"images": "nowhere"})
    assert last.startswith("refused as it is: ")
    assert "nowhere" in last


def test_a_file_that_is_none_is_one_line(capsys):
    assert main(["plan", "--configfile", "missing.yaml"]) == 1
    assert capsys.readouterr().err == "reperf: missing.yaml: No such file or directory\n"
