"""Runs that end badly: named in the cell, never a number, and easily run again."""

import json
import os
import re
import signal
from pathlib import Path

import pandas as pd
import pytest

from tests.helpers.small_benchmark import TOY, Benchmark
from tests.helpers.waiting import wait_for_text

ONE_RUN = [TOY["suites"][1] | {"systems": ["stand-in"]}]
RERUN = "snakemake --forcerun $(reperf runs --failed)"
TABLE = "results/summary.csv"


@pytest.fixture
def benchmark(begun_benchmark: Benchmark) -> Benchmark:
    return begun_benchmark


def first_run(benchmark: Benchmark) -> Path:
    return benchmark.folder / "results/runs/small-synthetic/stand-in/1n1g/1"


def read_record(run: Path) -> dict:
    return json.loads((run / "run.json").read_text())


def cell(benchmark: Benchmark) -> pd.Series:
    return pd.read_csv(benchmark.folder / TABLE).iloc[0]


@pytest.mark.long
def test_a_run_past_its_time_limit_is_tried_again_and_then_recorded(benchmark: Benchmark):
    slow = [ONE_RUN[0] | {"shape": {"milliseconds": 600}}]
    benchmark.configure(suites=slow, time_limit=1)
    said = benchmark.refused()
    lines = said.splitlines()
    first, again, second, _, incomplete, rerun, last = lines[-7:]
    run = "run 1 of 1: small-synthetic stand-in 1n1g, repeat 1: "
    assert first.startswith(f"{run}failed: results/runs/")
    assert "timeout: no end after 1 s" in first
    assert first.endswith(" (logs/train/small-synthetic/stand-in/1n1g/1.log)")
    assert again == f"{run}tried again"
    assert second.startswith(f"{run}timeout: no end after 1 s")
    assert "failed: 1 of 1 cells failed: small-synthetic/stand-in/1n1g (timeout: " in incomplete
    log = benchmark.folder / last.removeprefix("the full output is in ")
    assert "Error in rule train" in log.read_text()
    assert rerun == f"run the failed cells again: {RERUN}"
    assert (cell(benchmark)["status"], cell(benchmark)["n"]) == ("timeout", 0)
    assert "no end after 1 s" in cell(benchmark)["reason"]
    assert pd.isna(cell(benchmark)["throughput_median"])
    assert sorted(path.name for path in (first_run(benchmark) / "tries").iterdir()) == ["1", "2"]
    page = (benchmark.folder / "results/report.html").read_text()
    assert "no end after 1 s" in page

    # Asked for by force, it is tried again, and the call fails again.
    path = first_run(benchmark).relative_to(benchmark.folder)
    said = benchmark.refused("--retries", "0", "--force", "--", f"{path}/run.json")
    fault = f"reperf: {path}: timeout: no end after 1 s"
    assert [line for line in said.splitlines() if line.startswith(fault)], said

    # The one command that was printed measures the cell, once the cause is gone.
    benchmark.configure(suites=slow)
    benchmark.said("bash", "-c", RERUN.replace("--forcerun", f"{TABLE} --forcerun"))
    assert cell(benchmark)["status"] == "ok"
    assert len(list((first_run(benchmark) / "tries").iterdir())) == 4


BAD_ENDS = {
    "dies": ({"dies": 2}, "failed", r"rank 1 on \S+ was ended by SIGKILL"),
    "hangs": ({"hangs": 2}, "timeout", r"no end after 20 s; .*last heard of at iteration 2"),
    "refuses": ({"refuses": 3}, "failed", "rank 1: the toy gives up at iteration 3"),
    "full": ({"fits": 1}, "oom", r"rank \d: no memory left for 2 samples"),
    "good": ({}, "ok", "$"),
}
"""Suite -> its toy's shape, the status of its cell, and how the reason begins."""


@pytest.mark.timeout(300)
def test_bad_ends_are_named_and_the_others_go_on(benchmark: Benchmark):
    suite = ONE_RUN[0] | {"topologies": ["1n2g"]}
    suites = [suite | {"name": name, "shape": shape} for name, (shape, *_) in BAD_ENDS.items()]
    benchmark.configure(suites=suites, time_limit=20)
    asked = "--retries", "0", TABLE
    said = benchmark.refused(*asked)
    again = RERUN.replace("--forcerun", f"{' '.join(asked)} --forcerun")
    assert said.rstrip().endswith(f"run it again: {again}")
    cells = pd.read_csv(benchmark.folder / TABLE, keep_default_na=False)
    assert list(cells["status"]) == [status for _, status, _ in BAD_ENDS.values()]
    for name, reason in zip(cells["suite"], cells["reason"], strict=True):
        assert re.match(BAD_ENDS[name][2], reason), (name, reason)
    assert not benchmark.trainers()


@pytest.mark.long
def test_a_killed_workflow_leaves_no_trainer_and_resumes(finished_benchmark: Benchmark):
    benchmark = finished_benchmark
    done = read_record(benchmark.folder / "results/runs/small/stand-in/1n1g/1")
    text = (benchmark.folder / "config.yaml").read_text()
    (benchmark.folder / "config.yaml").write_text(text.replace("repeats: 2", "repeats: 3"))
    run = benchmark.folder / "results/runs/small/stand-in/1n1g/3"
    asked = benchmark.command(str(run.relative_to(benchmark.folder) / "run.json"))
    with benchmark.started(*asked) as snakemake:
        wait_for_text(run, "tries/1/train.log", "started on")
        snakemake.send_signal(signal.SIGKILL)
    benchmark.wait_until_nobody_trains()
    assert not (run / "run.json").exists()

    benchmark.made(TABLE)
    assert read_record(run)["status"] == "ok"
    assert read_record(benchmark.folder / "results/runs/small/stand-in/1n1g/1") == done


@pytest.mark.long
def test_code_that_changes_in_the_middle_of_a_campaign_is_measured_by_no_run(benchmark: Benchmark):
    benchmark.configure(suites=[ONE_RUN[0] | {"repeats": 2, "shape": {"milliseconds": 1000}}])
    first = first_run(benchmark)
    second = first.with_name("2")
    code = benchmark.folder / "workflow/trainers/contract/driver.py"
    asked = "--retries", "0", TABLE
    with benchmark.started(*benchmark.command(*asked)) as snakemake:
        wait_for_text(first, "tries/1/train.log", "started on")
        code.write_text(code.read_text() + "\nEDITED = True\n")
        said, _ = snakemake.communicate(timeout=300)
    edited = code.relative_to(benchmark.folder)
    why = f"{edited}: the trainer's code, of which this file changed last, is not that of the plan"
    assert snakemake.returncode == 1
    assert read_record(first)["status"] == "failed"
    assert read_record(first)["reason"].startswith(f"changed while it ran: {why}")
    assert not (second / "run.json").exists()
    assert re.search(f"repeat 2: failed: .*{why}", said), said

    benchmark.made(*asked)
    assert cell(benchmark)["n"] == 2
    assert read_record(first)["trainer"] == read_record(second)["trainer"]


def test_a_folder_has_one_workflow_and_a_run_that_ends_with_it_is_no_failed_run(benchmark):
    benchmark.configure(suites=ONE_RUN, iterations=4000, print_every=2)
    run = first_run(benchmark)
    with benchmark.started(*benchmark.command("--retries", "0")) as first:
        wait_for_text(run, "tries/1/train.log", "started on")
        assert f"in use by process {first.pid}" in benchmark.refused()
        os.killpg(first.pid, signal.SIGTERM)
        first.communicate(timeout=300)
    assert not benchmark.trainers()
    assert "stopped from outside: SIGTERM" in read_record(run / "tries/1")["reason"]
    assert not (run / "run.json").exists()  # the next call trains again


@pytest.mark.long
def test_a_full_disk_is_one_line_and_loses_nothing(benchmark: Benchmark, new_disk):
    benchmark.configure(suites=ONE_RUN)
    runs = benchmark.folder / "results/runs"
    runs.parent.mkdir(exist_ok=True)
    runs.symlink_to(new_disk("4k"))
    assert "No space left on device" in benchmark.refused("--retries", "0")
    assert not (first_run(benchmark) / "run.json").exists()
    assert not benchmark.trainers()
