"""The `reperf` command where its output, its reader or its user will not have any more of it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pytest
from reperf.archive.container import Member, write
from reperf.cli import INTERRUPTED, NOBODY_READS, WRONG_ARGUMENTS, main
from reperf.commands.measure import _object
from reperf.config import load_report
from reperf.doctor.diagnosis import Finding
from reperf.doctor.screen import show
from reperf.measuring.measure import Measurement
from reperf.plans.report_plan import ReportPlan
from rich.console import Console

from tests.helpers.written_probes import diagnosis

LOG = Path(__file__).parents[2] / "data" / "logs" / "oneflow_resnet50_2n8g_b128_fp32.log"
REPERF = Path(sys.executable).with_name("reperf")
SUITE = {
    "name": "one",
    "workload": "resnet50",
    "precision": "fp32",
    "batch_size": 4,
    "systems": ["pytorch"],
}
HOSTILE = "\x1b[31mred\r\n\u202e [bold]x[/bold]"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Something for every command to print: a log, an archive, a table of runs that failed."""
    shutil.copy(LOG, tmp_path / "train.log")
    write(tmp_path / "x.zip", [Member.of_bytes("a", b"a")])
    report = load_report({"device": "cpu", "suites": [SUITE]})
    told = report.model_dump(mode="json", by_alias=True)
    (tmp_path / "results").mkdir()
    (tmp_path / "results/plan.json").write_text(ReportPlan(profile="local", report=told).text)
    return tmp_path


def call(folder: Path, line: str, **variables: str) -> subprocess.CompletedProcess:
    """Run a line of bash in a folder; the status is that of reperf in its pipe."""
    command = f"set -o pipefail; {line}".replace("reperf", str(REPERF))
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


COMMANDS = [
    "--help",
    "config docs",
    "measure train.log",
    "measure --json train.log",
    "archive verify x.zip",
    "runs --suite one",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_has_read_enough_ends_a_command_without_a_word(folder, command):
    answer = call(folder, f"reperf {command} | true")
    assert (answer.returncode, answer.stderr) == (NOBODY_READS, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_cannot_be_written_is_one_line(folder, command):
    answer = call(folder, f"reperf {command} > /dev/full")
    assert answer.returncode == 1
    assert answer.stderr == (
        "reperf: standard output: cannot be written: No space left on device\n"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_output_is_one_line(folder, command):
    answer = call(folder, f"reperf {command} >&-")
    assert answer.returncode == 1
    assert answer.stderr == (
        "reperf: standard output: is closed; allowed: a terminal, a file or a pipe\n"
    )


def test_an_error_that_nobody_can_read_does_not_reach_the_output(folder):
    answer = call(folder, "reperf measure nothing.zip 2>&-; reperf archive verify no.zip 2>&-")
    assert (answer.returncode, answer.stdout) == (1, "")


@pytest.mark.parametrize("encoding", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C"}])
@pytest.mark.parametrize("form", ["", "--json"])
def test_a_terminal_that_knows_ascii_alone_is_shown_any_name(folder, encoding, form):
    for name in ("\u00fc\u6570.log", "\udcff.log"):
        shutil.copy(LOG, folder / name)
    variables = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"} | encoding
    answer = call(folder, f"reperf measure {form} *.log", **variables)
    assert (answer.returncode, answer.stderr) == (0, "")
    logs = [line for line in answer.stdout.splitlines() if ".log" in line]
    assert len(logs) == 3
    assert answer.stdout.isascii()


def test_names_of_files_cannot_write_to_the_terminal_or_forge_a_line(folder):
    name = HOSTILE.replace("/", "_")
    shutil.copy(LOG, folder / f"{name}.log")
    shutil.copy(folder / "x.zip", folder / f"{name}.zip")
    word = r"$'\e[31mred\r\n'"
    lines = ("measure *red*.log", "archive verify *red*.zip", "archive verify *red*.log")
    for line in (*lines, f"measure {word}", "config *red*.log", f"runs --suite {word}"):
        answer = call(folder, f"reperf {line}")
        said = answer.stdout + answer.stderr
        assert r"\x1b[31mred\r\n" in said, line
        assert said.replace("\n", "").isprintable(), line
        assert not re.search(r"^ *\[bold\]", said, re.MULTILINE), line


@pytest.mark.parametrize("terminal", [True, False])
def test_what_the_doctor_found_is_shown_letter_by_letter(terminal):
    finding = Finding(check=HOSTILE, level="error", nodes=(HOSTILE,), what=HOSTILE, advice=HOSTILE)
    found = diagnosis().model_copy(update={"findings": (finding,)})
    stream = StringIO()
    show(found, Console(file=stream, force_terminal=terminal, width=400, color_system=None))
    said = stream.getvalue()
    assert said.count(r"\x1b[31mred\r\n\u202e [bold]x[/bold]") == 4
    assert said.replace("\n", "").replace("\t", "").isprintable()
    # On a terminal the builds' table comes first, and the advice has a line of its own.
    assert len(said.splitlines()) == (5 if terminal else 1)


def test_an_object_of_json_holds_no_number_that_json_lacks():
    odd = Measurement("log", None, "refused", throughput=float("inf"), seconds=float("nan"))
    found = json.loads(_object(odd), parse_constant=pytest.fail)
    assert (found["throughput"], found["seconds"]) == (None, None)


def test_ctrl_c_ends_a_command_without_a_word(tmp_path):
    os.mkfifo(tmp_path / "train.log")
    command = subprocess.Popen(
        [REPERF, "measure", tmp_path / "train.log"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    writer = os.open(tmp_path / "train.log", os.O_WRONLY)  # returns when reperf reads
    os.write(writer, b"a line\n")
    time.sleep(0.2)
    command.send_signal(signal.SIGINT)
    answer = command.communicate(timeout=240)
    os.close(writer)
    assert (command.returncode, *answer) == (INTERRUPTED, "", "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "measur x.log",
            "COMMAND: got 'measur'; allowed: archive, config, doctor, latex, measure, ",
        ),
        (
            "measure --window 15:5 train.log",
            "--window: got '15:5'; allowed: FIRST:LAST, FIRST below",
        ),
        ("measure --method Published train.log", "published; did you mean published? (see reperf"),
        ("measure --unit img train.log", "--unit: got 'img'; allowed: images, "),
        ("runs --repeat x", "--repeat: got 'x'; allowed: a whole number above 0"),
        ("runs --repeat 1234567890123", "allowed: a whole number above 0, of up to 12 digits"),
        ("config shema", "form: got 'shema'; allowed: docs, schema; did you mean schema?"),
        ("--versoin", "unrecognized arguments: --versoin; did you mean --version? (see reperf"),
        ("", "COMMAND: is missing; allowed: archive, config, doctor, latex, measure, plan, runs"),
        (
            "plan mine.yaml",
            "reperf plan: unrecognized arguments: mine.yaml; did you mean --configf",
        ),
        ("runs --configfile none.yaml", "none.yaml: No such file or directory"),
        ("latex one", "results/summary.csv: No such file or directory; allowed: a table that"),
        ("archive verify none.zip", "none.zip: No such file or directory; allowed: an archive"),
    ],
)
def test_a_wrong_argument_is_answered_in_one_line_with_what_is_allowed(
    folder, monkeypatch, capsys, line, words
):
    monkeypatch.chdir(folder)
    try:
        status = main(line.split())
    except SystemExit as left:
        status = left.code
    said = capsys.readouterr().err
    assert status in (1, WRONG_ARGUMENTS)
    assert len(said.splitlines()) == 1
    assert words in said
