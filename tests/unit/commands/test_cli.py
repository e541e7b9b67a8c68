"""The `reperf` command where its output, its reader or its user will not have any more of it."""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from reperf.archive.container import Member, write
from reperf.cli import INTERRUPTED, NOBODY_READS, WRONG_ARGUMENTS, main
from reperf.commands.measure import _object
from reperf.config import load_report
from reperf.measuring.measure import Measurement
from reperf.plans.plan_files import ReportPlan
from reperf.tables import MEASUREMENTS, write_table

from tests.helpers.waiting import wait_until

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
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Something for every command to print: a log, a zip file, a table of runs that failed."""
    shutil.copy(LOG, tmp_path / "train.log")
    write(tmp_path / "x.zip", [Member.of_bytes("a", b"a")])
    report = load_report({"device": "cpu", "suites": [SUITE]})
    told = report.model_dump(mode="json", by_alias=True)
    (tmp_path / "results").mkdir()
    (tmp_path / "results/plan.json").write_text(ReportPlan(report=told).text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> int:
    """Call reperf in this process; returns its exit status."""
    try:
        return main(arguments)
    except SystemExit as left:
        return left.code


def start(line: str, **variables: str) -> subprocess.CompletedProcess:
    """Run a line of bash; the status is that of reperf in its pipe."""
    command = f"set -o pipefail; {line}".replace("reperf", str(REPERF))
    environment = {**os.environ, **variables}
    return subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, check=False
    )


FULL = "reperf: standard output: cannot be written: No space left on device\n"
CLOSED = "reperf: standard output: is closed; allowed: a terminal, a file or a pipe\n"


@pytest.mark.parametrize("command", ["config schema", "measure --json train.log", "--help"])
@pytest.mark.parametrize(
    ("output", "ended"),
    [("| true", (NOBODY_READS, "")), ("> /dev/full", (1, FULL)), (">&-", (1, CLOSED))],
)
def test_an_output_that_takes_no_more_ends_a_command_in_one_line_or_none(
    folder, command, output, ended
):
    unbuffered = "1" if command == "--help" else ""  # then argparse hides what print() does not
    answer = start(f"reperf {command} {output}", PYTHONUNBUFFERED=unbuffered)
    assert (answer.returncode, answer.stderr) == ended


def test_an_error_that_nobody_can_read_does_not_reach_the_output(folder, monkeypatch, capsys):
    for command, status in (("measure", 2), ("archive verify", 1)):
        monkeypatch.setattr(sys, "stderr", None)
        assert call(*command.split(), "no.zip") == status
        assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("form", "encoding"), [("", {"PYTHONIOENCODING": "ascii"}), ("--json", {"LC_ALL": "C"})]
)
def test_a_terminal_that_knows_ascii_alone_is_shown_any_name(folder, form, encoding):
    for name in ("\u00fc\u6570.log", "\udcff.log"):
        shutil.copy(LOG, folder / name)
    variables = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"} | encoding
    answer = start(f"reperf measure {form} *.log", **variables)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert sum(".log" in line for line in answer.stdout.splitlines()) == 3
    assert answer.stdout.isascii()


@pytest.mark.parametrize(
    ("command", "ending"),
    [
        ("measure", ".log"),
        ("measure", ""),  # not there
        ("archive verify", ".zip"),
        ("archive verify", ".log"),
        ("config", ".log"),
        ("runs --suite", ""),
    ],
)
def test_names_cannot_write_to_the_terminal_or_forge_a_line(folder, capsys, command, ending):
    name = HOSTILE.replace("/", "_")
    shutil.copy(LOG, f"{name}.log")
    shutil.copy("x.zip", f"{name}.zip")
    call(*command.split(), name + ending)
    said = "".join(capsys.readouterr())
    assert r"\x1b[31mred\r\n" in said
    assert said.replace("\n", "").isprintable()
    assert not re.search(r"^ *\[bold\]", said, re.MULTILINE)


def test_a_report_that_init_writes_passes_the_check(folder, capsys):
    assert call("config", "init", "mine.yaml") == 0
    assert Path("mine.yaml").read_text().startswith("# yaml-language-server: $schema=")
    assert call("config", "check", "mine.yaml") in (0, 1)  # it needs GPUs
    assert "mine.yaml: " in "".join(capsys.readouterr())
    assert call("config", "init", "mine.yaml") == 1
    assert "mine.yaml: exists already; allowed: a new file" in capsys.readouterr().err
    Path("small.yaml").write_text(json.dumps({"device": "cpu", "repeats": 2, "suites": [SUITE]}))
    assert call("config", "check", "small.yaml") == 0
    assert capsys.readouterr().out == "small.yaml: 1 suite, 2 runs\n"


def test_runs_are_paths_in_a_pipe_and_a_table_in_a_terminal(folder, monkeypatch, capsys):
    def printed(*options: str) -> str:
        assert call("runs", "--repeat", "1", *options) == 0
        return capsys.readouterr().out

    path = "results/runs/one/pytorch/1n1g/1/run.json"
    assert printed() == f"{path}\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert printed("--paths") == f"{path}\n"
    assert re.search(r"one/pytorch/1n1g/1 +not measured", printed())
    measured = dict.fromkeys(MEASUREMENTS) | {"log": "results/runs/one/pytorch/1n1g/1/train.log"}
    measured |= {"status": "ok", "throughput": 1234.5, "unit": "images/s"}
    write_table(Path("results/suites/one/measurements.csv"), [measured], MEASUREMENTS)
    assert re.search(r"one/pytorch/1n1g/1 +ok +1,234.50 images/s", printed())


def test_an_object_of_json_holds_no_number_that_json_lacks():
    odd = Measurement("log", None, "refused", throughput=float("inf"), seconds=float("nan"))
    found = json.loads(_object(odd), parse_constant=pytest.fail)
    assert (found["throughput"], found["seconds"]) == (None, None)


def test_ctrl_c_ends_a_command_without_a_word(tmp_path):
    log = tmp_path / "train.log"
    os.mkfifo(log)
    pipe = subprocess.PIPE
    command = subprocess.Popen([REPERF, "measure", log], stdout=pipe, stderr=pipe, text=True)
    writer = os.open(log, os.O_WRONLY)  # returns when reperf opens it
    os.write(writer, b"a line\n")
    # It waits for more once nothing is left in the pipe.
    wait_until(lambda: not any(fcntl.ioctl(writer, termios.FIONREAD, bytes(4))), "it to read")
    command.send_signal(signal.SIGINT)
    answer = command.communicate(timeout=60)
    os.close(writer)
    assert (command.returncode, *answer) == (INTERRUPTED, "", "")


KNOWN = "allowed: archive, compare, config, doctor, estimate, export"
LAST = "reproduce, runs, survey, systems; did you mean"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("measur x.log", f"COMMAND: got 'measur'; {KNOWN}"),
        ("verify x.zip", f"{LAST} archive verify?"),
        ("plan --profile slurm", f"{LAST} estimate? (see reperf --help)"),
        ("", f"COMMAND: is missing; {KNOWN}"),
        ("--versoin", "unrecognized arguments: --versoin; did you mean --version? (see reperf"),
        ("measure --window 15:5 x.log", "--window: got '15:5'; allowed: FIRST:LAST, FIRST below"),
        ("measure --method Published x.log", "published; did you mean published? (see reperf"),
        ("measure --unit img train.log", "--unit: got 'img'; allowed: images, "),
        ("runs --repeat x", "--repeat: got 'x'; allowed: a whole number above 0"),
        ("runs --repeat 1234567890123", "allowed: a whole number above 0, of up to 12 digits"),
        ("runs --configfile none.yaml", "none.yaml: No such file or directory"),
        ("config shema", "got 'shema'; allowed: check, init, schema; did you mean schema?"),
        ("estimate a.yaml", "estimate: unrecognized arguments: a.yaml; did you mean --config"),
        ("export one", "results/summary.csv: No such file or directory; run `make report`"),
        ("archive verify none.zip", "none.zip: No such file or directory; name an archive"),
    ],
)
def test_a_wrong_argument_is_answered_in_one_line_with_what_is_allowed(folder, capsys, line, words):
    assert call(*line.split()) in (1, WRONG_ARGUMENTS)
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert words in said
