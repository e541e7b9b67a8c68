"""What a report stands on, edited or asked for differently: it is made again, or refused."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from reperf.files import sha256

from tests.helpers.small_benchmark import ROOT, TOY, Benchmark, new_benchmark

RUN = "results/runs/small/stand-in/1n1g/1"


def built_files(benchmark: Benchmark) -> dict[Path, bytes]:
    """All that is made from the runs: tables, figures, the report, archives."""
    folder = benchmark.folder
    found = [*folder.glob("results/*.[chmt]*"), *folder.glob("results/suites/*/*.csv")]
    found += [*folder.glob("figures/*.*"), *folder.glob("archive/*.zip")]
    found += [*folder.glob("figures/published/*.svg")]
    return {path.relative_to(folder): path.read_bytes() for path in sorted(found) if path.is_file()}


def forget(benchmark: Benchmark) -> None:
    shutil.rmtree(benchmark.folder / ".snakemake")


def test_whatever_was_edited_is_built_again(finished_benchmark: Benchmark):
    built = built_files(finished_benchmark)
    assert len(built) > 15
    for name, content in built.items():
        path = finished_benchmark.folder / name
        path.write_bytes(content.replace(b"5", b"6") if path.suffix == ".csv" else content[:-9])
    answer = finished_benchmark.snakemake()
    assert answer.returncode == 0, answer.stdout
    assert "results/suites/small/summary.csv: has changed since it was built" in answer.stdout
    assert built_files(finished_benchmark) == built
    assert finished_benchmark.planned() == {}


PAGE = "results/report.html"


def test_a_table_that_was_edited_with_the_list_of_what_was_made_is_in_no_report(
    finished_benchmark: Benchmark,
):
    name = "results/suites/small/measurements.csv"
    table = finished_benchmark.folder / name
    text = table.read_text()
    before = built_files(finished_benchmark)
    number = re.search(r",ok,,(\d+\.\d+),", text)[1]
    table.write_text(text.replace(number, f"9{number}"))
    with edited_list(finished_benchmark) as entries:
        entries[name]["wrote"][name] = sha256(table)
    for _ in range(2):  # the next call is told the same
        answer = finished_benchmark.snakemake("--retries", "0")
        assert answer.returncode != 0
        assert f"write the report: failed: {name}: is not what the logs give" in answer.stdout
    after = built_files(finished_benchmark)
    # Snakemake removes what a failed job should have made.
    for path in (Path(PAGE), Path("archive/small.zip")):
        assert after.get(path, before[path]) == before[path]


@contextmanager
def edited_list(benchmark: Benchmark) -> Iterator[dict]:
    """The list of what was made, to be changed."""
    path = benchmark.folder / "results/made.json"
    entries = json.loads(path.read_text())
    yield entries
    path.write_text(json.dumps(entries))


def test_what_was_lost_is_made_again_without_snakemakes_memory(finished_benchmark: Benchmark):
    forget(finished_benchmark)
    for lost, made in {
        "archive/small.zip": {"archive", "complete"},
        "results/suites/small/summary.csv": {"summarise", "report", "archive"},
        RUN: {"train", "measure", "report", "archive"},
    }.items():
        path = finished_benchmark.folder / lost
        path.rename(finished_benchmark.folder / "lost")
        assert made <= finished_benchmark.planned().keys(), lost
        (finished_benchmark.folder / "lost").rename(path)


@pytest.mark.long
def test_a_lost_log_is_taken_from_the_last_try(finished_benchmark: Benchmark):
    log = finished_benchmark.folder / RUN / "train.log"
    content = log.read_bytes()
    tries = list((finished_benchmark.folder / RUN / "tries").iterdir())
    log.unlink()
    answer = finished_benchmark.snakemake()
    assert answer.returncode == 0, answer.stdout
    assert log.read_bytes() == content
    assert list((finished_benchmark.folder / RUN / "tries").iterdir()) == tries


def test_an_edited_table_does_not_get_into_an_archive_alone(finished_benchmark: Benchmark):
    table = finished_benchmark.folder / "results/suites/small/summary.csv"
    archive = finished_benchmark.folder / "archive/small.zip"
    content, archived = table.read_bytes(), archive.read_bytes()
    table.write_bytes(content.replace(b"ok", b"OK"))
    answer = finished_benchmark.snakemake("archive/small.zip")
    assert answer.returncode == 0, answer.stdout
    assert table.read_bytes() == content
    assert archive.read_bytes() == archived


def test_an_edited_record_refuses_its_run(finished_benchmark: Benchmark):
    record = finished_benchmark.folder / RUN / "run.json"
    content = json.loads(record.read_text())
    record.write_text(json.dumps(content | {"git_commit": "f" * 40}, indent=2))
    answer = finished_benchmark.snakemake()
    assert answer.returncode != 0
    assert f"{RUN}/run.json: has changed since it was written" in answer.stdout
    for report in ("results/report.html", "results/report.md"):
        text = (finished_benchmark.folder / report).read_text()
        assert "has changed since it was written" in text
        assert "f" * 40 not in text


@pytest.mark.long
def test_a_record_that_is_none_refuses_its_run_and_the_report_is_written(
    finished_benchmark: Benchmark,
):
    (finished_benchmark.folder / RUN / "run.json").write_text("[" * 100_000)
    answer = finished_benchmark.snakemake()
    assert answer.returncode != 0
    assert "Traceback" not in answer.stdout
    cells = pd.read_csv(finished_benchmark.folder / "results/summary.csv")
    assert list(cells["status"])[:2] == ["partial", "ok"]
    answer = finished_benchmark.call("reperf", "archive", "verify", "archive/small.zip")
    assert answer.returncode == 0, answer.stdout


@pytest.mark.long
def test_runs_of_another_configuration_are_not_taken_over(finished_benchmark: Benchmark):
    forget(finished_benchmark)
    assert finished_benchmark.planned() == {}
    small, synthetic = TOY["suites"]
    finished_benchmark.configure(suites=[small | {"shape": {"loading": 2}}, synthetic], seed=7)
    # Snakemake must not forget, over what is forced, why other jobs run.
    answer = finished_benchmark.snakemake("--forcerun", "measure", "report", "archive")
    assert answer.returncode == 0, answer.stdout
    assert "loading is 1 by the run record, 2 by the configuration" in answer.stdout
    for path in finished_benchmark.folder.glob("results/runs/*/*/*/*/run.json"):
        run = json.loads(path.read_text())["run"]
        assert run["shape"]["loading"] == (2 if run["suite"] == "small" else 1)
        assert run["seed"] == 6 + run["repeat"]
    assert "loading 2" in (finished_benchmark.folder / "results/report.html").read_text()
    # What was measured before is kept.
    assert len(list((finished_benchmark.folder / RUN / "tries").iterdir())) == 2


def test_another_configuration_is_seen_without_snakemakes_memory(finished_benchmark: Benchmark):
    forget(finished_benchmark)
    for changes, made, kept in (
        ({"title": "another title"}, {"report"}, {"train", "measure", "draw_figures"}),
        ({"window": {"warmup": 1, "measured": 3}}, {"measure", "report", "archive"}, {"train"}),
        ({"data": {"name": "embedded", "parts": 8}}, {"convert", "train"}, {"make_set"}),
    ):
        finished_benchmark.configure(**changes)
        planned = finished_benchmark.planned().keys()
        assert made <= planned, changes
        assert not kept & planned, changes


def test_what_a_description_says_is_read_anew_by_tables_and_report(finished_benchmark: Benchmark):
    described = finished_benchmark.folder / "workflow/workloads/toy.yaml"
    text = described.read_text()
    assert "\nepoch: " in text
    described.write_text(text.replace("\nepoch: ", "\nepoch: 1"))
    planned = finished_benchmark.planned()
    assert {"measure", "summarise", "report", "archive"} <= planned.keys()
    assert "train" not in planned


def test_logs_that_were_put_back_from_a_copy_are_measured_again(finished_benchmark: Benchmark):
    # A copy keeps its times, which are older than the tables'.
    first, second = (finished_benchmark.folder / RUN).parent / "1", Path(RUN).with_name("2")
    for name in ("train.log", "run.json"):
        shutil.copy2(finished_benchmark.folder / second / name, first / name)
    planned = finished_benchmark.planned()
    assert {"train", "measure", "report", "archive"} <= planned.keys()


@pytest.mark.long
def test_a_cut_data_set_is_converted_again_and_its_runs_are_kept(finished_benchmark: Benchmark):
    manifest = finished_benchmark.folder / "data/embedded/tfrecord/manifest.json"
    whole = manifest.read_bytes()
    manifest.write_bytes(b"")
    assert finished_benchmark.planned() == {"convert": 1}
    answer = finished_benchmark.snakemake()
    assert answer.returncode == 0, answer.stdout
    assert manifest.read_bytes() == whole
    assert finished_benchmark.planned() == {}
    # What trains meanwhile waits for it.
    manifest.write_bytes(b"")
    shutil.rmtree(finished_benchmark.folder / RUN)
    planned = finished_benchmark.planned()
    assert planned.keys() >= {"convert", "train", "measure", "report", "complete"}
    assert planned["train"] == 1


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


def test_a_finished_report_does_not_hide_that_another_one_cannot_be_made(
    finished_benchmark: Benchmark,
):
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
    log = "results/runs/small/stand-in/1n1g/1/train.log"
    (finished_benchmark.folder / log).unlink()
    (finished_benchmark.folder / log).symlink_to("/proc/self/mem")  # where reading fails
    assert refused(finished_benchmark) == f"{log}: cannot be read: Input/output error"


def test_a_target_outside_the_report_is_one_line(finished_benchmark: Benchmark):
    """tests/unit/test_nearest.py has what is said of mistyped ones."""
    run = "results/runs/small/stand-in/1n4g/1"
    said = refused(finished_benchmark, "--", f"{run}/run.json")
    assert said.startswith(f"{run}: not in the report of ")


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


def test_results_that_are_moved_or_copied_are_not_trained_again(
    finished_benchmark: Benchmark, tmp_path: Path
):
    moved = Benchmark(finished_benchmark.folder.rename(tmp_path / "moved"))
    assert moved.planned() == {}
    forget(moved)
    assert moved.planned() == {}
    clone = new_benchmark(tmp_path / "clone", (moved.folder / ".envs").resolve())
    # Without their times, as a download leaves them.
    shutil.copytree(moved.folder / "results", clone.folder / "results", copy_function=shutil.copy)
    planned = clone.planned()
    assert {"draw_figures", "archive", "complete"} <= planned.keys()
    assert not {"train", "convert", "environment"} & planned.keys()
