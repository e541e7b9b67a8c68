"""A suite of logs that others made goes the same way, to the report and into an archive."""

import shutil
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from tests.helpers.small_benchmark import TOY, Benchmark
from tests.helpers.step_logs import event, step, step_log

LOGS = Path(__file__).parents[1] / "data" / "logs"
RESNET50 = (LOGS / "oneflow_resnet50_2n8g_b128_fp32.log").read_text()
STOP = "1597933977.6064055"


def dlperf_archive(path: Path) -> None:
    """Three repeats on 2n8g, three at a sixteenth of the batch on 1n1g, one log that is cut."""
    single = RESNET50.replace("= 8", "= 1").replace("= 2", "= 1")
    for speed in ("3988.891", "5917.583"):
        single = single.replace(speed, str(float(speed) / 16))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as members:
        for repeat in (1, 2, 3):
            stop = f"{float(STOP) - (repeat - 1) * 0.25:.7f}"
            name = f"g/r50_b128_fp32_{repeat}.log"
            members.writestr(f"oneflow/2n8{name}", RESNET50.replace(STOP, stop))
            later = single.replace(STOP, stop).replace(" 15979339", " 15979439")
            members.writestr(f"oneflow/1n1{name}", later)
        cut = "".join(RESNET50.splitlines(keepends=True)[:-1])
        members.writestr("oneflow/2n8g/r50_b128_fp32_4.log", cut)


@pytest.fixture
def benchmark(begun_benchmark: Benchmark) -> Benchmark:
    return begun_benchmark


@pytest.fixture
def theirs(benchmark: Benchmark) -> Benchmark:
    """A report that runs nothing."""
    dlperf_archive(benchmark.folder / "logs-of-oneflow.zip")
    suite = {
        "name": "theirs",
        "workload": "resnet50",
        "precision": "fp32",
        "from": {"path": "logs-of-oneflow.zip", "window": {"warmup": 20, "measured": 100}},
    }
    benchmark.configure(suites=[suite])
    answer = benchmark.snakemake()
    assert answer.returncode == 0, answer.stdout
    return benchmark


@pytest.mark.long
def test_an_archive_of_logs_becomes_a_report_and_again_when_it_has_changed(
    theirs: Benchmark, tmp_path: Path
):
    folder = theirs.folder
    cells = pd.read_csv(folder / "results/summary.csv").set_index("topology")
    assert list(cells["system"]) == ["oneflow", "oneflow"]
    assert set(cells["source"]) == {"logs-of-oneflow.zip"}
    two = cells.loc["2n8g"]
    assert (two["status"], two["n"], two["batch_size_per_device"]) == ("partial", 3, 128)
    assert "1 of 4 repeats not measured; refused: too short" in two["reason"]
    assert round(two["throughput_min"], 2) == 5915.65
    assert (two["speedup"], two["efficiency"]) == (16.0, 1.0)
    for kind in ("throughput", "speedup"):
        assert (folder / f"figures/theirs-{kind}.svg").stat().st_size > 0
    markdown = (folder / "results/report.md").read_text()
    assert "logs-of-oneflow.zip" in markdown
    assert not (folder / "results/runs").exists()
    assert theirs.planned() == {}

    rebuilt = tmp_path / "rebuilt"
    archive = folder / "archive/theirs.zip"
    answer = theirs.call("reperf", "archive", "rebuild", str(archive), "--to", str(rebuilt))
    assert answer.returncode == 0, answer.stdout
    for table in ("measurements", "summary"):
        name = f"results/suites/theirs/{table}.csv"
        assert (rebuilt / name).read_bytes() == (folder / name).read_bytes()

    # Logs that have changed are measured again.
    with zipfile.ZipFile(folder / "logs-of-oneflow.zip", "a") as members:
        members.writestr("oneflow/2n8g/r50_b128_fp32_5.log", RESNET50)
    planned = theirs.planned()
    assert {"measure", "summarise", "draw_figures", "report", "archive"} <= planned.keys()
    assert "train" not in planned


def test_own_runs_and_logs_of_others_share_a_table(finished_benchmark: Benchmark):
    folder = finished_benchmark.folder
    runs = folder / "results/runs/small/stand-in"
    shutil.copytree(runs, folder / "earlier")
    small, synthetic = TOY["suites"]
    finished_benchmark.configure(suites=[small | {"from": ["earlier"]}, synthetic])
    assert "train" not in finished_benchmark.planned()
    answer = finished_benchmark.snakemake()
    assert answer.returncode == 0, answer.stdout
    cells = pd.read_csv(folder / "results/suites/small/summary.csv", keep_default_na=False)
    assert list(cells["source"]) == ["", "", "earlier", "earlier"]
    ours, theirs = cells[cells["source"] == ""], cells[cells["source"] != ""]
    assert list(ours["n"]) == [2, 2]
    # The same runs, once more, are no repeats.
    assert list(theirs["n"]) == [0, 0]
    assert all("counted already, as results/runs/small/" in one for one in theirs["reason"])


@pytest.mark.long
def test_hostile_logs_are_refused_and_the_report_is_written(benchmark: Benchmark):
    hostile = benchmark.folder / "hostile" / "1n2g"
    hostile.mkdir(parents=True)
    logs = {
        "no-time": [step(20, 0, 16), step(120, 5e-324, 16)],
        "huge-batch": [event("global_batch_size", 10**30), step(20, 0, 16), step(120, 9, 16)],
        "huge-fact": [event("world_size", 10**18), step(20, 0, 16), step(120, 9, 16)],
        "beginnings": ['"tracked_stats" ' + ":::MLLOG {" * 100_000],
    }
    stop = event("run_stop", None, metadata={"status": "success"})
    for name, lines in logs.items():
        (hostile / f"{name}.log").write_text("\n".join([*step_log()[:5], *lines, stop, ""]))
    (hostile / "good.log").write_text("\n".join(step_log()))
    source = {
        "path": "hostile",
        "variant": "$\\frac{$ <b>",
        "window": {"warmup": 20, "measured": 100},
    }
    suite = {"name": "theirs", "workload": "resnet50", "precision": "fp32", "batch_size": 8}
    benchmark.configure(suites=[suite | {"from": source}])
    answer = benchmark.snakemake()
    assert answer.returncode == 0, answer.stdout
    assert "Traceback" not in answer.stdout
    runs = pd.read_csv(benchmark.folder / "results/measurements.csv").set_index("log")
    assert runs["status"].value_counts().to_dict() == {"refused": 4, "ok": 1}
    assert (benchmark.folder / "results/report.html").exists()
    verified = benchmark.call("reperf", "archive", "verify", "archive/theirs.zip")
    assert verified.returncode == 0, verified.stdout


@pytest.mark.long
def test_a_suite_whose_logs_are_all_refused_has_a_report(benchmark: Benchmark):
    folder = benchmark.folder / "theirs"
    folder.mkdir()
    (folder / "a.log").write_text("nothing\n")
    suite = {"name": "theirs", "workload": "resnet50", "precision": "fp32", "from": "theirs"}
    benchmark.configure(suites=[suite])
    answer = benchmark.snakemake()
    assert answer.returncode == 0, answer.stdout
    assert "no known format" in (benchmark.folder / "results/report.md").read_text()
    verified = benchmark.call("reperf", "archive", "verify", "archive/theirs.zip")
    assert verified.returncode == 0, verified.stdout


def test_logs_that_are_not_there_are_one_line(benchmark: Benchmark):
    suite = {"name": "theirs", "workload": "resnet50", "precision": "fp32", "from": "nowhere.zip"}
    benchmark.configure(suites=[suite])
    answer = benchmark.snakemake("--dry-run")
    assert answer.returncode != 0
    assert "config.yaml: suite theirs: from: nowhere.zip is not there; allowed: " in answer.stdout
    assert "Traceback" not in answer.stdout


@pytest.mark.long
def test_logs_called_by_the_time_of_day_are_archived_verified_and_rebuilt(
    benchmark: Benchmark, tmp_path: Path
):
    folder = benchmark.folder / "2n8g"
    folder.mkdir()
    odd = ("run_12:30:01.log", "a b.log", "$HOME'.log", "*.log", "\u00e9.log")
    for repeat, name in enumerate(odd):
        (folder / name).write_text(RESNET50.replace(STOP, f"{float(STOP) + repeat / 4:.7f}"))
    suite = {"name": "theirs", "workload": "resnet50", "precision": "fp32", "batch_size": 128}
    window = {"warmup": 20, "measured": 100}
    benchmark.configure(suites=[suite | {"from": {"path": "2n8g", "window": window}}])
    answer = benchmark.snakemake()
    assert answer.returncode == 0, answer.stdout
    measured = pd.read_csv(benchmark.folder / "results/measurements.csv")
    assert set(measured["log"]) == {f"2n8g/{name}" for name in odd}
    assert set(measured["status"]) == {"ok"}

    archive, rebuilt = "archive/theirs.zip", tmp_path / "rebuilt"
    answer = benchmark.call("reperf", "archive", "verify", archive)
    assert answer.returncode == 0, answer.stdout
    answer = benchmark.call("reperf", "archive", "rebuild", archive, "--to", str(rebuilt))
    assert answer.returncode == 0, answer.stdout
    assert {path.name for path in (rebuilt / "from/2n8g").iterdir()} == set(odd)
    table = "results/suites/theirs/measurements.csv"
    assert (rebuilt / table).read_bytes() == (benchmark.folder / table).read_bytes()
