"""What a report stands on, edited or asked for differently: it is made again, or refused."""

import json
import os
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from tests.helpers.small_benchmark import ROOT, TOY, Benchmark, new_benchmark

RUN = "results/runs/small/stand-in/1n1g/1"
TABLE = "results/summary.csv"


def built_files(benchmark: Benchmark) -> dict[Path, bytes]:
    """All that is made from the runs: tables, figures, the report, archives."""
    folder = benchmark.folder
    found = [*folder.glob("results/*.[chmt]*"), *folder.glob("results/suites/*/*.csv")]
    found += [*folder.glob("figures/*.*"), *folder.glob("archive/*.zip")]
    found += [*folder.glob("figures/published/*.svg")]
    return {path.relative_to(folder): path.read_bytes() for path in sorted(found) if path.is_file()}


def forget(benchmark: Benchmark) -> None:
    shutil.rmtree(benchmark.folder / ".snakemake")


PAGE = "results/report.html"


def write_in_the_past(path: Path, content: str) -> None:
    """Edit a file and put its time back, so that Snakemake makes nothing again because of it."""
    times = path.stat()
    path.write_text(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.long
def test_an_edited_table_gets_into_no_report_and_no_archive(finished_benchmark: Benchmark):
    """Its readers measure once more, whatever its time and whatever Snakemake remembers of it."""
    name = "results/suites/small/measurements.csv"
    table = finished_benchmark.folder / name
    text = table.read_text()
    before = built_files(finished_benchmark)
    number = re.search(r",ok,,(\d+\.\d+),", text)[1]
    write_in_the_past(table, text.replace(number, f"9{number}"))
    answer = finished_benchmark.snakemake("--retries", "0", "--forcerun", "report")
    assert f"write the report: failed: {name}: is not what the logs give" in answer.stdout
    table.touch()
    said = finished_benchmark.refused("--retries", "0", "--keep-going")
    assert f"archive small: failed: {name}: is not what the logs give" in said
    after = built_files(finished_benchmark)
    # Snakemake removes what a failed job should have made.
    for path in (Path(PAGE), Path("archive/small.zip")):
        assert after.get(path, before[path]) == before[path]
    table.unlink()
    finished_benchmark.made()
    assert built_files(finished_benchmark) == before


@pytest.mark.long
def test_an_edited_figure_gets_into_no_report_and_no_archive(finished_benchmark: Benchmark):
    name = "figures/small-speedup.svg"
    figure = finished_benchmark.folder / name
    write_in_the_past(figure, f"{figure.read_text()}<!-- edited -->")
    for step, forced in (("write the report", "report"), ("archive small", "archive")):
        said = finished_benchmark.refused("--retries", "0", "--forcerun", forced)
        assert f"{step}: failed: {name}: is not as it was made" in said


def test_what_was_lost_is_made_again(finished_benchmark: Benchmark):
    for lost, made in {
        "results/suites/small/summary.csv": {"summarise", "report", "archive"},
        "figures/small-speedup.svg": {"draw_figures", "report", "archive"},
        RUN: {"train", "measure", "report", "archive"},
    }.items():
        path = finished_benchmark.folder / lost
        path.rename(finished_benchmark.folder / "lost")
        assert made <= finished_benchmark.planned().keys(), lost
        (finished_benchmark.folder / "lost").rename(path)


@pytest.mark.long
def test_an_edited_record_one_that_is_none_and_a_cut_log_refuse_their_runs_and_no_more(
    finished_benchmark: Benchmark,
):
    folder = finished_benchmark.folder
    runs = folder / "results/runs/small/stand-in"
    edited, none, cut = (runs / one for one in ("1n1g/1", "1n1g/2", "1n2g/1"))
    content = json.loads((edited / "run.json").read_text())
    (edited / "run.json").write_text(json.dumps(content | {"git_commit": "f" * 40}, indent=2))
    (none / "run.json").write_text("[" * 100_000)
    log = (cut / "train.log").read_text()
    (cut / "train.log").write_text(log[: log.index('"iteration": 4')])
    answer = finished_benchmark.snakemake()
    assert answer.returncode != 0
    assert "Traceback" not in answer.stdout
    said = "has changed since it was written"
    assert f"{RUN}/run.json: {said}" in answer.stdout
    for report in ("results/report.html", "results/report.md"):
        text = (folder / report).read_text()
        assert said in text
        assert "f" * 40 not in text
    measured = pd.read_csv(folder / "results/measurements.csv")
    assert list(measured["status"]) == ["refused", "refused", "refused", "ok", "ok"]
    assert list(measured["throughput"].isna()) == [True, True, True, False, False]
    cells = pd.read_csv(folder / "results/summary.csv")
    assert list(cells["status"]) == ["refused", "partial", "ok", "unsupported"]
    assert list(cells["n"]) == [0, 1, 1, 0]
    finished_benchmark.said("reperf", "archive", "verify", "archive/small.zip")


@pytest.mark.long
def test_without_snakemakes_memory_tables_are_made_again_and_other_runs_refused(finished_benchmark):
    built = built_files(finished_benchmark)
    forget(finished_benchmark)
    assert "measure" in (planned := finished_benchmark.planned())
    assert not {"train", "convert", "environment"} & planned.keys()
    finished_benchmark.made(TABLE)
    assert built_files(finished_benchmark) == built
    forget(finished_benchmark)
    small, synthetic = TOY["suites"]
    finished_benchmark.configure(suites=[small | {"shape": {"loading": 2}}, synthetic], seed=7)
    finished_benchmark.made(TABLE)
    cells = (finished_benchmark.folder / TABLE).read_text()
    assert cells.count("loading is 1 by the run record, 2 by the configuration") == 2


DRAWN = {"draw_figures", "draw_unscaled_figures"}  # of the suite on two topologies, and on one
TABLES = {"measure", "summarise", *DRAWN, "join_tables", "report", "archive", "complete"}


def test_another_configuration_makes_what_it_decides_and_says_why(finished_benchmark):
    small, synthetic = TOY["suites"]
    for changes, made, runs in (
        ({"title": "another title"}, {"report", "archive", "complete"}, 0),
        ({"window": {"warmup": 1, "measured": 3}}, TABLES, 0),
        (
            {"suites": [small, synthetic | {"batch_size": 3}]},
            {"train", *TABLES} - {"draw_figures"},
            1,
        ),
        (
            {"data": {"name": "embedded", "parts": 8}},
            {"convert", "train", *TABLES} - {"draw_unscaled_figures"},
            4,
        ),
    ):
        finished_benchmark.configure(**changes)
        planned = finished_benchmark.planned()
        assert (planned.keys(), planned.get("train", 0)) == (made, runs), changes
    said = finished_benchmark.made("--dry-run")
    assert "Params have changed since last execution" in said
    finished_benchmark.configure()
    assert finished_benchmark.planned() == {}


def test_edited_code_and_descriptions_are_seen_and_touched_code_is_not(finished_benchmark):
    workflow = finished_benchmark.folder / "workflow"
    for file in (workflow / "reperf").rglob("*.py"):
        file.touch()
    assert finished_benchmark.planned() == {}
    described = workflow / "workloads/toy.yaml"
    text = described.read_text()
    assert "\nepoch: " in text
    described.write_text(text.replace("\nepoch: ", "\nepoch: 1"))
    planned = finished_benchmark.planned().keys()
    assert {"measure", "summarise", "report", "archive"} <= planned
    assert "train" not in planned
    described.write_text(text)
    with (workflow / "reperf/drawing/figures.py").open("a") as file:
        file.write("\nEDITED = 1\n")
    drawn = {*DRAWN, "draw_published_figures", "report", "archive", "complete"}
    assert finished_benchmark.planned().keys() == drawn


@pytest.mark.long
def test_a_run_is_trained_anew_only_where_its_try_cannot_be_taken_up(finished_benchmark: Benchmark):
    """A log that was lost is taken from its try, a lost data set is made with the same bytes."""
    folder = finished_benchmark.folder
    log, tries = folder / RUN / "train.log", folder / RUN / "tries"
    manifest = folder / "data/embedded/tfrecord/manifest.json"
    content = {file: file.read_bytes() for file in (log, manifest)}
    log.unlink()
    finished_benchmark.made("runs")
    manifest.write_bytes(b"")
    said = finished_benchmark.refused("--retries", "0", "runs")
    assert f"{manifest.relative_to(folder)}: not the data set" in said
    manifest.unlink()
    finished_benchmark.made("runs")
    assert {file: file.read_bytes() for file in content} == content
    manifest.touch()
    assert finished_benchmark.planned("runs") == {}
    forget(finished_benchmark)
    manifest.touch()  # Snakemake remembers no checksum of it
    assert "train" in finished_benchmark.planned("runs")
    finished_benchmark.made("runs")
    assert len(list(tries.iterdir())) == 1
    finished_benchmark.made("runs", "--forcerun", f"{RUN}/run.json")
    assert len(list(tries.iterdir())) == 2
    assert finished_benchmark.planned("runs") == {}


def refused(benchmark: Benchmark, *arguments: str) -> str:
    """The one line with which a dry run and a call refuse the same."""
    said = []
    for options in (("--dry-run", "--quiet"), ()):
        answer = benchmark.snakemake(*options, *arguments)
        assert answer.returncode == 1, answer.stdout
        assert "Traceback" not in answer.stdout
        lines = [line for line in answer.stdout.splitlines() if line.startswith("reperf: ")]
        said.append(lines[-1])
        assert answer.stdout.rstrip().endswith(lines[-1])
    assert said[0] == said[1]
    return said[0].removeprefix("reperf: ")


@pytest.mark.long
def test_a_finished_report_does_not_hide_that_another_one_cannot_be_made(finished_benchmark):
    small, synthetic = TOY["suites"]
    missing = "config.yaml: suite small: from: q is not there; allowed: a log, or a folder"
    filled_in = "suites.small.from.q<b>x.path: got 'q<b>x'; allowed: names without { and }, and"
    for logs, fault in (("q", missing), ("q<b>x", filled_in)):
        (finished_benchmark.folder / "q<b>x").mkdir(exist_ok=True)
        finished_benchmark.configure(title="other", suites=[small | {"from": [logs]}, synthetic])
        assert fault in refused(finished_benchmark)
    finished_benchmark.configure()
    repeats = finished_benchmark.folder / "data/published/repeats.csv"
    repeats.unlink()
    assert refused(finished_benchmark).startswith(f"{repeats}: is not there; allowed: ")
    shutil.copy(ROOT / "data/published/repeats.csv", repeats)


def test_a_target_outside_the_report_is_one_line(finished_benchmark: Benchmark):
    run = "results/runs/small/stand-in/1n4g/1"
    said = refused(finished_benchmark, "--", f"{run}/run.json")
    assert said.startswith(f"{run}: not in this report; allowed: ")


def everything_in(folder: Path) -> dict[str, tuple[int, int]]:
    """Path -> size and time of each file and folder, but for what Snakemake and Python keep."""
    found = {}
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".snakemake", "__pycache__")]
        for path in (Path(here, name) for name in (*folders, *files)):
            state = path.lstat()
            # The time of a folder in which Python keeps its bytecode is Python's.
            seen = state.st_mtime_ns if path.is_file() or path.is_symlink() else 0
            found[str(path)] = (state.st_size if seen else 0, seen)
    return found


@pytest.mark.long
def test_a_dry_run_writes_nothing(finished_benchmark: Benchmark, tmp_path: Path):
    first = new_benchmark(tmp_path / "first", tmp_path / "envs")
    (first.folder / ".envs").unlink()
    before = everything_in(first.folder)
    assert first.planned()["environment"] == 1
    assert everything_in(first.folder) == before
    finished_benchmark.configure(seed=7, title="another", data={"name": "embedded", "parts": 8})
    before = everything_in(finished_benchmark.folder)
    assert {"train", "convert", "report"} <= finished_benchmark.planned().keys()
    assert everything_in(finished_benchmark.folder) == before


@pytest.mark.long
def test_results_that_are_moved_or_copied_are_not_trained_again(finished_benchmark, tmp_path):
    moved = Benchmark(finished_benchmark.folder.rename(tmp_path / "moved"))
    assert moved.planned() == {}
    forget(moved)
    assert not {"train", "convert", "environment"} & moved.planned().keys()
    clone = new_benchmark(tmp_path / "clone", (moved.folder / ".envs").resolve())
    # Without their times, as a download leaves them.
    shutil.copytree(moved.folder / "results", clone.folder / "results", copy_function=shutil.copy)
    planned = clone.planned()
    assert {"draw_figures", "archive", "complete"} <= planned.keys()
    assert not {"train", "convert", "environment"} & planned.keys()
