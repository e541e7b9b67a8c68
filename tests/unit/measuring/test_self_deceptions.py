"""How people fool themselves, from the runs to the cell: no number passes without a word.

docs/fooling-yourself.md tells of each.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd
import pytest
from reperf.config import LogSource, Run, Suite, Window
from reperf.data.set_read import read_of_set
from reperf.host import Host
from reperf.measuring.suite_rows import measure_suite
from reperf.measuring.summary import summarise
from reperf.records.run_record import Load
from reperf.tables import MEASUREMENTS, read_measurements, write_table

from tests.helpers.runs import RUN, SUITE, kept_run
from tests.helpers.step_logs import step_log
from tests.unit.logs.written import written

HOST = Host(hostname="a", cpu="c", cores=2, memory_bytes=1, os="o", kernel="k")
QUIET = Load(average=1, during=0.0, throttled=0.0, mhz=3000.0)


def paused(lines: list[str]) -> list[str]:
    """The same log of a laptop that slept for a minute; no line prints a speed."""
    quiet = [re.sub(r', "throughput": [0-9.]+', "", line) for line in lines]
    half = len(lines) // 2 + 1
    late = [
        re.sub(r'(?<="seconds": )[0-9.]+', lambda at: str(float(at[0]) + 70), line)
        for line in quiet[half:]
    ]
    return quiet[:half] + late


def row_of(suite: Suite, *runs: Run) -> pd.Series:
    """The only row of the summary of a suite that asks for some runs."""
    write_table("m.csv", measure_suite(suite, runs), MEASUREMENTS)
    [row] = summarise(read_measurements("m.csv"), unit="images")
    return pd.Series(row)


def cell(*repeats: dict, change: Callable[[list[str]], list[str]] = list) -> pd.Series:
    """The row of a cell whose repeats were recorded so; their logs may be changed."""
    runs = []
    for repeat, said in enumerate(repeats, 1):
        given = {name: said.pop(name) for name in ("input", "data") if name in said}
        runs.append(RUN.model_copy(update={"repeat": repeat} | given))
        usual = {"host": HOST, "load": QUIET, "started": f"2026-11-2{repeat}T00:00:00+00:00"}
        log = change(step_log(rate=100.0 + repeat))
        kept_run(runs[-1].folder, log, **{"run": runs[-1]} | usual | said)
    return row_of(SUITE.model_copy(update={"input": runs[0].input}), *runs)


def of_others(lines: Iterable[str], topology: str, batch: int, *window: int) -> pd.Series:
    """The row of a log of others, of which the configuration says where it ran."""
    Path("theirs.log").write_text("".join(f"{line}\n" for line in lines))
    asked = dict(zip(("warmup", "measured"), window, strict=True))
    source = LogSource(path=Path("theirs.log"), topology=topology, window=Window(**asked))
    return row_of(SUITE.model_copy(update={"batch_size": batch, "sources": (source,)}))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("second", "marks"),
    [
        ({}, ""),
        ({"host": HOST.model_copy(update={"hostname": "b"})}, "on several hosts: 2 hosts"),
        ({"load": QUIET.model_copy(update={"throttled": 0.5})}, "throttled 50.0 % of its time"),
        ({"load": QUIET.model_copy(update={"mhz": 1500.0})}, "clocks differ: 1500 to 3000 MHz"),
        ({"load": QUIET.model_copy(update={"during": 0.1, "stolen": 0.1})}, "machine busy"),
        ({"host": HOST.model_copy(update={"kernel": "l"})}, "not one thing"),
        ({"inherited": {"NCCL_SOCKET_IFNAME": "lo"}}, "not one thing"),
        ({"ended_well_before": 3}, "trained again"),
    ],
)
def test_a_repeat_under_other_conditions_marks_its_cell(second, marks):
    row = cell({}, second)
    assert (row["n"], row["marks"]) == (2, marks)


def test_a_repeat_under_another_variable_is_none_and_most_decide():
    odd = {"inherited": {"LD_LIBRARY_PATH": "/opt/other", "JSIMD_FORCENONE": "1"}}
    row = cell({}, {"inherited": {"CUDA_HOME": "/usr"}}, odd)
    assert (row["n"], row["status"], row["throughput_max"]) == (2, "partial", pytest.approx(102))
    differ = "JSIMD_FORCENONE was '1' and not set; LD_LIBRARY_PATH was '/opt/other' and"
    assert differ in row["reason"]


def test_a_machine_that_slept_in_the_window_marks_its_cell():
    row = cell({}, change=paused)
    assert row["throughput_median"] < 20  # of 101
    assert row["marks"] == "a gap in the window: one interval moves it by 81.5 %"


def test_a_link_that_leads_to_other_images_gives_no_repeat(folder):
    read = []
    for name in ("one", "two"):
        image = folder / name / "train" / "a" / "1.jpeg"
        image.parent.mkdir(parents=True)
        image.write_text(name)
        (folder / "mine").unlink(missing_ok=True)
        (folder / "mine").symlink_to(folder / name)
        digest, held = read_of_set("mine", "folder")
        read.append({"input": "folder", "data": "mine", "data_sha256": digest, "data_set": held})
    row = cell(*read)
    assert (row["n"], row["status"]) == (1, "partial")
    assert "same name, other data" in row["reason"]


def test_a_log_that_names_no_workload_says_in_its_row_who_does():
    lines = (
        f"2026-01-01 00:0{at}:00,000 - x.py - INFO: [Epoch 0][Batch {50 * at + 50}], "
        "Speed: 80 samples/sec, loss=1"
        for at in range(4)
    )
    row = of_others(lines, "1n1g", 96, 50, 100)
    assert (row["status"], row["reason"]) == ("ok", "")
    said = "unconfirmed: workload, precision, world size as the configuration says"
    assert row["marks"] == said


@pytest.mark.parametrize(
    ("style", "batch", "marked"),
    [
        ("torchvision", 8, True),  # nothing in its lines depends on the batch
        ("torchvision", 32, True),
        ("torchtitan", 8, False),  # four devices' batches are the global one that its log names
        ("torchtitan", 32, True),
        ("deepspeed", 8, False),
    ],
)
def test_a_batch_that_no_line_could_contradict_is_marked(style, batch, marked):
    row = of_others(written(style, last=300), "2n2g", batch, 100, 100)
    assert row["status"] == "ok"
    assert ("batch size per device" in row["unconfirmed"]) == marked
