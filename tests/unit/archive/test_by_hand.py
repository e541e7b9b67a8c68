"""A number by hand: what an archive says of it is what a reader finds in the log."""

import csv
import re
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from reperf.archive.by_hand import check_table, worked_example
from reperf.measuring.recheck import measured_tables
from reperf.member_names import CHECK, README
from reperf.tables import read_measurements

from tests.helpers.step_logs import planned_log, step_log
from tests.unit.archive.suites import RUN, contents_of, report_of

LOGS = Path(__file__).parents[2] / "data/logs"


def lines_of(example: str) -> dict[str, str]:
    """Label -> text of a worked example."""
    return dict(
        re.fullmatch(r"  (\S+(?: \d+)?) {2,}(.+)", line).groups() for line in example.split("\n")
    )


def computed(equation: str) -> tuple[float, float]:
    """Both sides of an equation such as "60 - 20 = 40"."""
    left, right = equation.replace(" x ", " * ").split(" = ")
    return eval(left), float(right)


def measured(path: str, batch_size: int = 8) -> pd.DataFrame:
    """The rows of the logs of others."""
    suite = report_of([], batch_size=batch_size, **{"from": path}).suites[0]
    return read_measurements(StringIO(next(iter(measured_tables(suite, ()).values()))))


def inside(name: str) -> Path:
    """Where a log of others lies in the working folder."""
    return Path(name).relative_to("from")


def test_the_readme_works_a_division_that_the_log_and_the_table_confirm(archived):
    contents = contents_of(archived)
    readme = contents[README].decode()
    said = lines_of(re.search(r"^  run  .*^  table [^\n]+", readme, re.DOTALL | re.MULTILINE)[0])
    log = contents[said["file"]].decode().splitlines()
    quoted = {label: text for label, text in said.items() if label.startswith("line ")}
    assert len(quoted) == 2
    for label, text in quoted.items():
        assert log[int(label.split()[1]) - 1] == text
    for label in ("samples", "seconds", "quotient"):
        left, right = computed(said[label])
        assert left == pytest.approx(right, rel=1e-9), label
    table = next(csv.DictReader(StringIO(contents[said["table"].split(", in ")[1]].decode())))
    assert said["table"].startswith(f"{table['throughput']} {table['unit']}, in ")
    assert float(table["throughput"]) == pytest.approx(right)
    assert said["run"] == "pytorch/1n1g/1"


def test_every_run_has_its_division(archived):
    contents = contents_of(archived)
    *good, failed = csv.DictReader(StringIO(contents[CHECK].decode()))
    assert [row["run"] for row in good] == ["pytorch/1n1g/1", "pytorch/1n1g/2", "pytorch/1n2g/1"]
    assert good[0]["log"] == f"{RUN}/train.log"
    for row in good:
        assert row["log"] in contents
        assert float(row["samples"]) / float(row["seconds"]) == float(row["quotient"])
        assert row["throughput"] == (row["quotient"] if row["status"] == "ok" else "")
        assert row["method"] == "window"
    assert [row["status"] for row in good] == ["ok", "ok", "refused"]
    assert failed["status"] == "timeout"
    assert failed["quotient"] == failed["throughput"] == ""


def one_log(folder: Path, text: str) -> pd.DataFrame:
    """The rows of one log of others in a folder."""
    folder.joinpath("1n2g").mkdir()
    folder.joinpath("1n2g/one.log").write_text(text)
    return measured("1n2g")


def test_a_log_that_prints_no_sum_of_samples_counts_its_steps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = re.sub(r'"samples": \d+, ', "", "\n".join(step_log(batch=16, world=2)))
    said = lines_of(worked_example(one_log(tmp_path, log), inside))
    assert said["samples"] == "(120 - 20) x 16 (the global batch) = 1600"
    assert computed(said["seconds"])[1] == pytest.approx(16)


def test_unix_times_of_a_log_of_others_are_subtracted(monkeypatch):
    monkeypatch.chdir(LOGS)
    name = "oneflow_resnet50_2n8g_b128_fp32.log"
    said = lines_of(worked_example(measured(name, 128), inside))
    assert said["samples"] == "(120 - 20) x 2048 (the global batch) = 204800"
    assert said["seconds"].startswith("1597933977.6064055 - 1597933942.9863544 = 34.62")
    assert computed(said["quotient"])[1] == pytest.approx(5915.65, abs=0.01)


def test_times_of_day_are_subtracted_in_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    times = [datetime(2026, 1, 2, 3, 4) + timedelta(seconds=0.16 * i) for i in range(130)]
    lines = [
        f"DLL {time:%Y-%m-%d %H:%M:%S.%f} - Epoch: 0 Iteration: {iteration}  train.loss : 6.9  "
        "train.total_ips : 100.00 img/s\n"
        for iteration, time in enumerate(times)
    ]
    said = lines_of(worked_example(one_log(tmp_path, "".join(lines)), inside))
    assert said["line 21"] == lines[20].strip()
    assert said["seconds"] == "16, from the time of the first line to that of the second"


def test_a_number_that_two_lines_do_not_give_is_no_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = one_log(tmp_path, "\n".join(planned_log()))
    assert "quotient" in worked_example(rows, inside)
    for changed in ({"seconds": 3.0}, {"samples": 3.0}, {"method": "published"}, {"status": "oom"}):
        assert worked_example(rows.assign(**changed), inside).startswith("  No number"), changed
    Path("1n2g/one.log").unlink()
    assert worked_example(rows, inside).startswith("  No number")
    assert check_table(rows).count("\n") == 2
