"""What a report stands on, edited or asked for differently: it is made again, or refused."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from small_benchmark import SMALL, Benchmark

RUN = "results/runs/small/pytorch/1n1g/1"


def built_files(benchmark: Benchmark) -> dict[Path, bytes]:
    """All that is made from the runs: tables, figures, the report, archives."""
    folder = benchmark.folder
    found = [*folder.glob("results/*.*"), *folder.glob("results/suites/*/*.csv")]
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


@pytest.mark.parametrize(
    ("lost", "made"),
    [
        ("results/suites/small/summary.csv", {"summarise", "report", "archive"}),
        ("archive/small.zip", {"archive", "complete"}),
        (RUN, {"train", "measure", "report", "archive"}),
    ],
)
def test_what_was_lost_is_made_again(lost: str, made: set, finished_benchmark: Benchmark):
    path = finished_benchmark.folder / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    forget(finished_benchmark)
    assert made <= finished_benchmark.planned().keys()


def test_a_lost_log_is_taken_from_the_last_try(finished_benchmark: Benchmark):
    log = finished_benchmark.folder / RUN / "train.log"
    content = log.read_bytes()
    log.unlink()
    answer = finished_benchmark.snakemake()
    assert answer.returncode == 0, answer.stdout
    assert log.read_bytes() == content
    assert len(list((finished_benchmark.folder / RUN / "tries").iterdir())) == 1


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


@pytest.mark.parametrize("forced", [[], ["--forcerun", "measure", "report", "archive"]])
def test_runs_of_another_configuration_are_not_taken_over(
    forced: list[str], finished_benchmark: Benchmark
):
    forget(finished_benchmark)
    assert finished_benchmark.planned() == {}
    small, synthetic = SMALL["suites"]
    finished_benchmark.configure(suites=[small | {"shape": {"image_size": 40}}, synthetic], seed=7)
    answer = finished_benchmark.snakemake(*forced)
    assert answer.returncode == 0, answer.stdout
    assert "image_size is 32 by the run record, 40 by the configuration" in answer.stdout
    for path in finished_benchmark.folder.glob("results/runs/*/*/*/*/run.json"):
        run = json.loads(path.read_text())["run"]
        assert run["shape"]["image_size"] == (40 if run["suite"] == "small" else 32)
        assert run["seed"] == 6 + run["repeat"]
    assert "image size 40" in (finished_benchmark.folder / "results/report.html").read_text()
    # What was measured before is kept.
    assert len(list((finished_benchmark.folder / RUN / "tries").iterdir())) == 2


@pytest.mark.parametrize(
    ("changes", "made", "kept"),
    [
        ({"title": "another title"}, {"report"}, {"train", "measure", "draw_figures"}),
        ({"window": {"warmup": 1, "measured": 3}}, {"measure", "report", "archive"}, {"train"}),
        ({"data": {"name": "embedded", "parts": 8}}, {"convert", "train"}, {"make_images"}),
    ],
)
def test_another_configuration_is_seen_without_snakemakes_memory(
    changes: dict, made: set, kept: set, finished_benchmark: Benchmark
):
    forget(finished_benchmark)
    finished_benchmark.configure(**changes)
    planned = finished_benchmark.planned()
    assert made <= planned.keys()
    assert not kept & planned.keys()


def test_logs_that_were_put_back_from_a_copy_are_measured_again(finished_benchmark: Benchmark):
    # A copy keeps its times, which are older than the tables'.
    first, second = (finished_benchmark.folder / RUN).parent / "1", Path(RUN).with_name("2")
    for name in ("train.log", "run.json"):
        shutil.copy2(finished_benchmark.folder / second / name, first / name)
    planned = finished_benchmark.planned()
    assert {"train", "measure", "report", "archive"} <= planned.keys()
