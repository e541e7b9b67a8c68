"""`reperf compare`: what it takes, what it prints, and its exit status."""

import json
import re
import shutil
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from markdown_it import MarkdownIt
from reperf.commands.compare import BAD_INPUT
from reperf.host import Environment, Host
from reperf.measuring.comparison_output import NOTHING_COMPARABLE, SLOWER, lines_of
from reperf.measuring.report_sides import Side, differences
from reperf.records.diagnosis import Diagnosis, NodeReport, Probe, Verdict
from reperf.tables import MEASUREMENTS

from tests.helpers.report_tables import ROW, STEADY, caller, written_report
from tests.helpers.runs import RUN, kept_run, record_of
from tests.helpers.small_benchmark import ROOT
from tests.helpers.step_logs import BOOTED, planned_log

sys.path.append(str(ROOT / "benchmarks"))

from comparing import verdicts, write_published

HOST = Host(hostname="h", cpu="c", cores=2, memory_bytes=1, os="o", kernel="k")
DURING = {
    name: datetime.fromtimestamp(BOOTED + seconds, UTC).isoformat()
    for name, seconds in (("started", 990), ("ended", 1100))
}
"""When a planned log was written."""


@pytest.fixture
def report(tmp_path):
    """Write a report's folder, by its name."""
    return lambda name, *given, **changes: written_report(tmp_path / name, *given, **changes)


@pytest.fixture
def compare(capsys):
    return caller(capsys, "compare")


def build(torch: str) -> Environment:
    packages = {"torch": torch, "numpy": "2.3"}
    return Environment(
        lock="envs/pytorch.txt", lock_sha256="a" * 64, python="3.12", packages=packages
    )


def test_a_slower_cell_is_a_line_and_a_status(report, compare):
    status, out, err = compare(report("old"), report("new", 0.95))
    assert (status, err) == (SLOWER, "")
    lines = out.splitlines()
    assert lines[0].endswith("new/results: 1 cell in both")
    [row] = [line for line in lines if line.startswith("small pytorch 1n2g")]
    assert row.split("  ")[-1].strip() == "slower"
    assert "-5.00 %" in row and "7:7" in row and "images/s" in row
    assert lines[-1] == "1 slower (threshold 1 %)"


@pytest.mark.parametrize(
    ("factor", "options", "wanted"),
    [
        (1.05, [], 0),
        (0.95, [], SLOWER),
        (0.95, ["--threshold", "10%"], 0),
        (0.99, [], 0),  # perhaps slower
        (0.99, ["--threshold", "0.1 %"], SLOWER),
    ],
)
def test_the_status_says_whether_a_cell_is_slower(report, compare, factor, options, wanted):
    status, out, _ = compare(report("old"), report("new", factor), *options, "--json")
    assert status == json.loads(out)["exit_status"] == wanted


FAILED = {"status": "failed", "reason": "rank 3 died", "throughput": None}


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        (FAILED, SLOWER, "no longer measured: ok -> failed: rank 3 died"),
        ({"precision": "amp"}, NOTHING_COMPARABLE, "no value of precision is in both: fp32 -> amp"),
        ({"unit": "tokens/s"}, NOTHING_COMPARABLE, "not comparable: unit images/s -> tokens/s"),
        ({"rows": []}, NOTHING_COMPARABLE, "1 cell only in the first"),
    ],
)
def test_what_has_no_number_to_compare_has_a_status_too(report, compare, changes, status, words):
    found, out, _ = compare(report("old"), report("new", **changes))
    assert found == status
    assert words in out


def row(**changes: object):
    """A report with a row that is otherwise."""
    return lambda new: written_report(new, rows=[ROW | changes])


def file(name: str, content: str):
    def write(new: Path) -> None:
        new.mkdir()
        (new / name).write_text(content)

    return write


def cut(new: Path) -> None:
    table = written_report(new) / "measurements.csv"
    table.write_text(table.read_text().rstrip().rpartition(",")[0] + "\n")


FIELDS = len(MEASUREMENTS)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda _: None, "new: no such file or folder; allowed: a report's folder, its archive, a"),
        (
            file("measurements.csv", "suite,system\n"),
            "measurements.csv: column workload is missing; allowed: a table of rep",
        ),
        (file("measurements.csv", ""), "measurements.csv: not a table: No columns to parse"),
        (row(throughput=0.0), "line 2: throughput is 0.0, of a run that is ok; allowed: a number"),
        (row(status="fine"), "line 2: status is 'fine'; allowed: ok, oom, failed, timeout, unsu"),
        (cut, f"csv: line 8 ends after {FIELDS - 1} of {FIELDS} fields; copy"),
        (file("notes.txt", "-"), "new: no report and no log is in it; allowed: a report's folder"),
        (lambda new: new.with_name("new.zip").write_bytes(b"PK no more"), "new.zip: "),
    ],
)
def test_bad_input_is_one_line(report, compare, tmp_path, write, words):
    write(tmp_path / "new")
    archive = tmp_path / "new.zip"
    status, out, err = compare(report("old"), archive if archive.exists() else tmp_path / "new")
    assert (status, out, len(err.splitlines())) == (BAD_INPUT, "", 1)
    assert words in err


@pytest.mark.parametrize("text", ["1", "-1%", "51%", "x%", "1%%"])
def test_a_threshold_is_a_percentage(compare, text):
    status, _, err = compare("old", "new", f"--threshold={text}")
    assert status == BAD_INPUT
    assert f"--threshold: got '{text}'; allowed: a percentage from 0% to 50%, such as 1%" in err


@pytest.mark.parametrize("option", ["--junit", "--html"])
def test_a_file_that_cannot_be_written_is_one_line(report, compare, tmp_path, option):
    status, out, err = compare(report("old"), report("new"), option, tmp_path)
    assert (status, out) == (BAD_INPUT, "")
    assert f"{tmp_path}: cannot be written: Is a directory" in err


def test_what_differs_is_listed_first_and_so_are_clocks_that_the_doctor_read(report, compare):
    sides = [report("old", hosts="node1"), report("new", hosts="node2 node3")]
    for side, torch, clock in zip(sides, ("2.13", "2.14"), ("1980 MHz", "1410 MHz"), strict=True):
        log = side.parent / "results/runs/small/pytorch/1n2g/1"
        log.mkdir(parents=True)
        host = HOST.model_copy(update={"driver": f"580.{torch[-1]}"})
        record_of(host=host, environment=build(torch), settings={"tf32": torch}).write(
            log / "run.json"
        )
        readings = {"GPU clocks": Verdict("ok", clock), "memory": Verdict("ok", clock)}
        said = {"shared_trouble": "", "disk_free": None, "ports": (), "environments": {}}
        probe = Probe(host=HOST, settings={"SMT": "1"}, readings=readings, **said)
        made = {"profile": "", "configfile": "", "made": "", "findings": (), "trials": ()}
        reports = (NodeReport(node="n", probe=probe),)
        Diagnosis(node_reports=reports, **made).write(side / "doctor.json")
    lines = compare(*(side.parent for side in sides))[1].splitlines()
    assert lines[1:6] == [
        "differs: hosts: node1 -> node2, node3",
        "differs: driver: 580.3 -> 580.4",
        "differs: setting tf32: 2.13 -> 2.14",
        "differs: GPU clocks: 1980 MHz -> 1410 MHz",
        "differs: packages: torch 2.13 -> 2.14",
    ]
    assert not any(line.startswith("differs") for line in lines[6:])


def test_what_one_side_does_not_say_shares_a_line():
    differing = {"driver": ([], ["580.1"]), "GPU": (["none"], ["NVIDIA H200"])}
    differing |= {"package torch": (["2.13"], []), "package numpy": (["2.3"], [])}
    assert lines_of(differing) == [
        "differs: GPU: none -> NVIDIA H200",
        "known on one side only: driver, packages",
    ]


def test_what_a_record_lacks_is_none_and_what_a_doctor_has_not_read_is_unknown():
    table = pd.DataFrame([{"key": "", "hosts": "", "commit": "", "log": "train.log"}])
    read = {"SMT": {"1"}}, {"SMT": {"1"}, "governor": {"powersave"}}
    base, new = (
        Side(Path(), table, {"train.log": record_of(host=HOST, settings=settings)}, readings=each)
        for settings, each in zip(({}, {"tf32": "on"}), read, strict=True)
    )
    assert differences(base, new, (table, table)) == {
        "setting tf32": (["none"], ["on"]),
        "governor": ([], ["powersave"]),
    }


def test_a_report_is_the_same_as_a_folder_a_table_and_an_archive(report, compare, tmp_path):
    old, new = report("old"), report("new", 0.95)
    suite = new.parent / "results/suites/small/measurements.csv"
    with zipfile.ZipFile(tmp_path / "small.zip", "w") as archive:
        archive.write(new / "measurements.csv", "results/suites/small/measurements.csv")
        record_of(environment=build("2.14")).write(tmp_path / "run.json")
        archive.write(tmp_path / "run.json", "results/runs/small/pytorch/1n2g/1/run.json")
    given = [new, new.parent, new / "measurements.csv", tmp_path / "small.zip"]
    answers = [json.loads(compare(old, path, "--json")[1]) for path in given]
    assert [answer["cells"] for answer in answers] == [answers[0]["cells"]] * 4
    assert {"name": "package torch", "base": [], "new": ["2.14"]} in answers[3]["differences"]
    suite.parent.mkdir(parents=True)
    shutil.move(new / "measurements.csv", suite)  # as an archive is unpacked
    assert json.loads(compare(old, new.parent, "--json")[1])["cells"] == answers[0]["cells"]


def logs(folder: Path, rates: list[float], build: Environment) -> Path:
    """A folder of logs of our own, with their records."""
    for repeat, rate in enumerate(rates, 1):
        run = RUN.model_copy(update={"repeat": repeat})
        host = HOST.model_copy(update={"hostname": f"node{repeat}"})
        told = {"run": run, "environment": build, "host": host, "seconds_to_print": 40} | DURING
        kept_run(folder / str(repeat), planned_log(rate=rate), **told)
    return folder


def test_folders_of_logs_are_measured_and_compared(compare, tmp_path):
    old = logs(tmp_path / "before", STEADY, build("2.13"))
    new = logs(tmp_path / "afterwards", [rate * 0.9 for rate in STEADY], build("2.14"))
    (new / "8").mkdir()
    shutil.copy(new / "1" / "train.log", new / "8" / "copy.log")
    status, out, _ = compare(old, new, "--json")
    found = json.loads(out)
    [cell] = found["cells"]
    assert (status, cell["reason"], cell["name"]) == (SLOWER, "", "small pytorch 1n2g")
    assert cell["n"] == [7, 7]  # a copy is no repeat
    # The 20th step is the first that is printed.
    first_steps = [40 - 19 * step_ms / 1000 for step_ms in cell["step_ms"]]
    assert cell["first_step_seconds"] == pytest.approx(first_steps, abs=0.01)
    assert {"name": "package torch", "base": ["2.13"], "new": ["2.14"]} in found["differences"]


def test_logs_of_others_are_compared_folder_by_folder(compare, tmp_path):
    log = ROOT / "tests/data/logs/oneflow_resnet50_2n8g_b128_fp32.log"
    for side, more in (("old", ""), ("new", "\n")):
        (tmp_path / side / "resnet").mkdir(parents=True)
        (tmp_path / side / "resnet" / log.name).write_text(log.read_text() + more)
    status, out, _ = compare(tmp_path / "old", tmp_path / "new")
    assert status == 0
    assert "resnet oneflow 2n8g" in out
    assert "cannot tell: about 4 repeats would" in out


def test_logs_of_several_systems_in_one_folder_are_no_repeats_of_each_other(compare):
    logs = ROOT / "data/measured/h200-reports"
    status, out, _ = compare(logs, logs, "--json")
    cells = json.loads(out)["cells"]
    assert status == NOTHING_COMPARABLE
    assert {cell["reason"] for cell in cells} == {"the same logs on both sides: 1"}
    assert [cell["n"] for cell in cells if cell["cell"]["system"] == "jax"] == [[1, 1]] * 3
    assert "torch gpt2-124m compile 1 device records" in [cell["name"] for cell in cells]


def test_junit_has_a_case_a_cell_and_a_failure_where_one_is_slower(report, compare, tmp_path):
    def rows(factor: float) -> list[dict]:
        cells = {"slow\x1b]]>": [x * factor for x in STEADY], "same": STEADY, "few": [100.0, 130.0]}
        return [
            ROW | {"suite": suite, "repeat": repeat, "throughput": throughput}
            for suite, throughputs in cells.items()
            for repeat, throughput in enumerate(throughputs, 1)
        ]

    old, new = report("old", rows=rows(1)), report("new", rows=rows(0.9))
    status, *_ = compare(old, new, "--junit", tmp_path / "junit.xml")
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (suite.attrib["tests"], suite.attrib["skipped"]) == ("3", "1")
    cases = {case.attrib["classname"]: case for case in suite.iter("testcase")}
    assert cases["same"].find("failure") is None and cases["same"].find("skipped") is None
    assert cases["few"].find("skipped").attrib["message"].startswith("cannot tell: ")
    assert status == int(suite.attrib["failures"])


def test_names_from_outside_are_text_on_a_page_in_markdown_and_in_a_terminal(
    report, compare, tmp_path
):
    odd = {"suite": "a|b\x1b[31m", "variant": "<script>*x*</b>\n[y](http://z)", "hosts": "`node`"}
    old, new, page = report("old", **odd), report("new", 0.9, **odd | {"hosts": "#1"}), "page.html"
    name = r"a|b\x1b[31m pytorch <script>*x*</b>\n[y](http://z) 1n2g"
    assert name in compare(old, new, "--html", tmp_path / page)[1]
    text = (tmp_path / page).read_text(encoding="utf-8")
    assert "&lt;script&gt;*x*" in text and "<script>*" not in text
    assert not re.search(r"(?:src|href)=.(?:https?:|/)", text)
    assert "1 of 1 slower" in text and 'class="slower"' in text and "light-dark(" in text
    tokens = MarkdownIt("commonmark").enable("table").parse(compare(old, new, "--markdown")[1])
    inline = {child.type for token in tokens for child in token.children or ()}
    assert inline <= {"text", "strong_open", "strong_close", "text_special"}
    cells = ["".join(child.content for child in token.children or ()) for token in tokens]
    assert {name, "differs: hosts: `node` -> #1", "1 slower (threshold 1 %)"} <= {*cells}
    assert cells.count("slower") == 1


def test_published_repeats_of_two_weeks_compare_as_the_page_shows(compare, tmp_path, monkeypatch):
    write_published(tmp_path)
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/comparing.md").read_text(encoding="utf-8")
    status, out, _ = compare("0822", "0829", "--html", "comparison.html")
    assert (status, out in page, Path("comparison.html").exists()) == (0, True, True)
    status, out, _ = compare("0822", "0829", "--threshold", "0%")
    assert status == SLOWER
    assert "1 slower" in out


@pytest.mark.parametrize("change", [-0.01, -0.02])
def test_a_change_at_a_small_spread_is_found_and_at_a_large_one_it_is_not(change):
    """The counts of docs/comparing.md, in small: 1 % beyond the threshold, seven repeats."""
    threshold = -0.01 - change
    found, _ = verdicts(100, 1, lambda: 0.003, change, threshold, 7)
    assert found["slower"] >= 95
    noisy, _ = verdicts(50, 1, lambda: 0.03, change, threshold, 7)
    assert noisy["cannot tell"] >= 35


def test_a_matrix_of_equal_cells_gives_few_false_alarms():
    _, others = verdicts(60, 40, lambda: 0.003, 0.0, 0.0, 7)
    assert others["alarm"] <= 8  # 3 are expected; more than 8, once in 200
