"""How people fool themselves, from the runs to the cell: no number passes without a word.

docs/fooling-yourself.md tells of each.
"""

from pathlib import Path

import pandas as pd
import pytest
from reperf.config import Suite
from reperf.data.set_read import read_of_set
from reperf.host import Host
from reperf.measuring.suite_rows import measure_suite
from reperf.measuring.summary import summarise
from reperf.records.run_record import Load
from reperf.tables import MEASUREMENTS, read_measurements, write_table

from tests.helpers.runs import RUN, kept_run
from tests.helpers.step_logs import step_log
from tests.unit.logs.written import written

SUITE = {"name": "small", "workload": "resnet50", "precision": "fp32", "batch_size": 8}
SUITE |= {"shape": {"image_size": 64}, "systems": ["pytorch"]}
HOST = Host(hostname="a", cpu="c", cores=2, memory_bytes=1, os="o", kernel="k")
QUIET = Load(average=1, during=0.0, throttled=0.0, mhz=3000.0)


def paused(lines: list[str]) -> list[str]:
    """The same log of a laptop that slept for a minute; no line prints a speed."""
    slept = []
    for number, line in enumerate(lines):
        before, _, after = line.partition(', "throughput":')
        line = before + after[after.index("}") :] if after else line  # noqa: PLW2901
        seconds = line.partition('"seconds": ')[2].partition(",")[0]
        if seconds and number > len(lines) // 2:
            line = line.replace(seconds, str(float(seconds) + 70))  # noqa: PLW2901
        slept.append(line)
    return slept


def cell(folder: Path, *repeats: dict, lines=lambda lines: lines, **suite: object) -> pd.Series:
    """The row of a cell whose repeats were recorded so."""
    runs = []
    for repeat, said in enumerate(repeats, 1):
        given = {name: said.pop(name) for name in ("input", "data") if name in said}
        run = RUN.model_copy(update={"repeat": repeat} | given)
        when = f"2026-11-2{repeat}T00:00:00+00:00"
        log = lines(step_log(rate=100.0 + repeat))
        kept_run(
            run.folder, log, **{"run": run, "host": HOST, "load": QUIET, "started": when} | said
        )
        runs.append(run)
    asked = Suite.model_validate(SUITE | {"input": runs[0].input} | suite)
    write_table(folder / "m.csv", measure_suite(asked, runs), MEASUREMENTS)
    [row] = summarise(read_measurements(folder / "m.csv"), unit="images")
    return pd.Series(row)


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
def test_a_repeat_under_other_conditions_marks_its_cell(folder, second, marks):
    row = cell(folder, {}, second)
    assert (row["n"], row["marks"]) == (2, marks)


def test_a_repeat_under_another_variable_is_none_and_most_decide(folder):
    odd = {"inherited": {"LD_LIBRARY_PATH": "/opt/other", "JSIMD_FORCENONE": "1"}}
    row = cell(folder, {}, {"inherited": {"CUDA_HOME": "/usr"}}, odd)
    assert (row["n"], row["status"]) == (2, "partial")
    assert row["throughput_max"] == pytest.approx(102)
    assert (
        "JSIMD_FORCENONE was '1' and not set; LD_LIBRARY_PATH was '/opt/other' and" in row["reason"]
    )


def test_a_machine_that_slept_in_the_window_marks_its_cell(folder):
    row = cell(folder, {}, lines=paused)
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
    row = cell(folder, *read)
    assert (row["n"], row["status"]) == (1, "partial")
    assert "same name, other data" in row["reason"]


def test_a_log_that_names_no_workload_says_in_its_row_who_does(folder):
    lines = [f"[Epoch 0][Batch {at}], Speed: 80 samples/sec, loss=1" for at in range(50, 201, 50)]
    stamped = (f"2026-01-01 00:0{at}:00,000 - x.py - INFO: {line}" for at, line in enumerate(lines))
    (folder / "theirs.log").write_text("".join(f"{line}\n" for line in stamped))
    source = {"path": "theirs.log", "topology": "1n1g", "window": {"warmup": 50, "measured": 100}}
    rows = measure_suite(Suite.model_validate(SUITE | {"batch_size": 96, "from": [source]}), [])
    write_table(folder / "m.csv", rows, MEASUREMENTS)
    [row] = summarise(read_measurements(folder / "m.csv"))
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
def test_a_batch_that_no_line_could_contradict_is_marked(folder, style, batch, marked):
    (folder / "theirs.log").write_text("".join(f"{line}\n" for line in written(style, last=300)))
    source = {"path": "theirs.log", "topology": "2n2g", "window": {"warmup": 100, "measured": 100}}
    suite = Suite.model_validate(SUITE | {"batch_size": batch, "from": [source]})
    [row] = measure_suite(suite, [])
    assert row["status"] == "ok"
    assert ("batch size per device" in row["unconfirmed"]) == marked
