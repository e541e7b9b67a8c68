"""What people see while a report is made: in a pipe, and on a terminal."""

import fcntl
import os
import re
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest

from tests.helpers.small_benchmark import TOY, Benchmark

ONE_RUN = [TOY["suites"][1] | {"systems": ["stand-in"]}]
WHERE = "The report is in results/report.html and results/report.md"


class Terminal:
    """A terminal of 80 columns that runs one command, and all that the command wrote to it."""

    def __init__(self, benchmark: Benchmark, *arguments: str, **variables: str) -> None:
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._before = termios.tcgetattr(slave)
        self._slave = slave
        self.text = ""
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *benchmark.command(*arguments)],  # Ctrl-C is its own
            cwd=benchmark.folder,
            env=benchmark.environment | {"TERM": "xterm-256color", "NO_COLOR": ""} | variables,
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.set_blocking(self._master, False)

    def read_until(self, pattern: str = "", seconds: float = 900) -> None:
        """Read until a pattern has come, or, without one, until the command has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ended = self.process.poll() is not None
            try:
                self.text += os.read(self._master, 1 << 16).decode()
            except BlockingIOError:
                if ended:
                    return
                time.sleep(0.05)
            if pattern and re.search(pattern, self.text):
                return
        raise AssertionError(f"{pattern!r} never came: {self.text}")

    def press_ctrl_c(self) -> None:
        os.write(self._master, b"\x03")

    def is_as_before(self) -> bool:
        """Whether the terminal's settings are as before, and its cursor was never hidden."""
        same = termios.tcgetattr(self._slave) == self._before
        return same and not re.search(r"\x1b\[\?(25l|1049h)", self.text)

    @property
    def end(self) -> str:
        """What stands below all that was drawn."""
        return re.split(r"\x1b\[[0-9;?]*[A-Za-z]", self.text)[-1].strip()

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)


def said_of_runs(folder: Path) -> set[str]:
    """What must be said of each run, from the table that the report shows."""
    return {
        f"{run.suite} {run.system} {run.topology}, repeat {run.repeat}: "
        f"{run.throughput:,.2f} images/s"
        for run in pd.read_csv(folder / "results/measurements.csv").itertuples()
    }


def full_log(folder: Path) -> str:
    (log,) = (folder / "logs").glob("????-??-??T??????.log")
    return log.read_text()


def test_in_a_pipe_there_is_a_plain_line_a_run_and_the_full_text_is_in_a_log(finished: Path):
    said = (finished / "said.txt").read_text()
    # Other tests keep this machine busy, and the call may say so.
    lines = [line for line in said.splitlines() if not line.startswith("this machine is busy")]
    assert re.fullmatch(r"5 runs and \d+ other steps to do", lines[-8]), said
    trained = [re.match(r"run (\d) of 5: ([^(]*) \(", line).groups() for line in lines[-7:-2]]
    assert [number for number, _ in trained] == [*"12345"]
    assert {run for _, run in trained} == said_of_runs(finished)
    assert lines[-2:] == ["write the report; its log: logs/report.log", WHERE]
    assert "\x1b" not in said
    assert "Reason: " not in said
    log = full_log(finished)
    assert "Reason: Missing output files: results/runs/" in log
    assert "-m reperf.training results/runs/small/stand-in/1n1g/1/plan.json " in log


def test_a_dry_run_is_snakemakes_own_with_its_reasons(benchmark: Benchmark):
    said = benchmark.made("-n")
    assert re.search(r"^train +5$", said, re.MULTILINE)
    # In whichever order: Snakemake has a set of them.
    assert re.search(r"^Reason: Missing output files: .*results/report\.md", said, re.M)
    assert not (benchmark.folder / "results").exists()


@pytest.mark.long
def test_a_plan_whose_reader_goes_away_ends_without_a_word(benchmark: Benchmark):
    said = benchmark.said("bash", "-c", "set -o pipefail; snakemake -n | head -1")
    assert "Traceback" not in said
    assert "BrokenPipe" not in said


@pytest.mark.long
def test_quiet_says_nothing_of_what_goes_well(benchmark: Benchmark):
    said = benchmark.made("--quiet", "--", "results/runs/small/stand-in/1n1g/1/run.json")
    assert [line for line in said.splitlines() if "run 1" in line or "step" in line] == []
    assert "Reason: " in full_log(benchmark.folder)


@pytest.mark.long
def test_on_a_terminal_the_runs_are_lines_above_a_display_that_goes_away(begun_benchmark):
    benchmark = begun_benchmark
    benchmark.configure(suites=ONE_RUN)
    terminal = Terminal(benchmark)
    try:
        terminal.read_until()
        assert terminal.process.returncode == 0, terminal.text
        assert "0 of 1 runs" in terminal.text
        assert re.search(r"  small-synthetic stand-in 1n1g, repeat 1: \d+ s", terminal.text)
        (said,) = said_of_runs(benchmark.folder)
        assert f"run 1 of 1: {said} (" in terminal.text
        assert WHERE in terminal.text
        assert terminal.is_as_before()
    finally:
        terminal.close()


@pytest.mark.long
def test_ctrl_c_leaves_the_terminal_as_it_was_and_nobody_trains(benchmark: Benchmark):
    benchmark.configure(suites=ONE_RUN, iterations=4000, print_every=2)
    terminal = Terminal(benchmark)
    try:
        terminal.read_until(r"repeat 1: ([3-9]|\d\d+) s")
        terminal.press_ctrl_c()
        terminal.read_until()
        assert terminal.process.returncode == 1
        assert "Terminating processes on user request" in terminal.text
        assert "the full output is in logs/" in terminal.end
        assert "Traceback" not in terminal.text
        assert terminal.is_as_before()
    finally:
        terminal.close()
    working = [process.info["cwd"] for process in psutil.process_iter(["cwd"])]
    assert str(benchmark.folder) not in working


@pytest.mark.weekly
def test_a_terminal_that_wants_no_escapes_gets_plain_lines(benchmark: Benchmark):
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        images = "data/embedded/images/manifest.json"
        terminal = Terminal(benchmark, "--forcerun", "make_set", "--", images, **variables)
        try:
            terminal.read_until()
            assert terminal.process.returncode == 0, terminal.text
            assert "1 step to do" in terminal.text
            assert "\x1b" not in terminal.text
        finally:
            terminal.close()
