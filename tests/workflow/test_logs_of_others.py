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


SUITE = {"workload": "resnet50", "precision": "fp32"}
WINDOW = {"warmup": 20, "measured": 100}
ODD = ("run_12:30:01.log", "a b.log", "$HOME'.log", "*.log", "\u00e9.log")
HOSTILE = {
    "no-time": [step(20, 0, 16), step(120, 5e-324, 16)],
    "huge-batch": [event("global_batch_size", 10**30), step(20, 0, 16), step(120, 9, 16)],
    "huge-fact": [event("world_size", 10**18), step(20, 0, 16), step(120, 9, 16)],
    "beginnings": ['"tracked_stats" ' + ":::MLLOG {" * 100_000],
}


@pytest.mark.long
def test_an_archive_odd_names_hostile_logs_and_none_become_a_report_and_archives(
    benchmark: Benchmark, tmp_path: Path
):
    folder = benchmark.folder
    dlperf_archive(folder / "logs-of-oneflow.zip")
    for logs in ("2n8g", "hostile/1n2g", "nothing"):
        (folder / logs).mkdir(parents=True)
    for repeat, name in enumerate(ODD):
        log = RESNET50.replace(STOP, f"{float(STOP) + repeat / 4:.7f}")
        (folder / "2n8g" / name).write_text(log)
    stop = event("run_stop", None, metadata={"status": "success"})
    for name, lines in HOSTILE.items():
        log = "\n".join([*step_log()[:5], *lines, stop, ""])
        (folder / f"hostile/1n2g/{name}.log").write_text(log)
    (folder / "hostile/1n2g/good.log").write_text("\n".join(step_log()))
    (folder / "nothing/a.log").write_text("nothing\n")
    hostile = {"path": "hostile", "window": WINDOW, "variant": "$\\frac{$ <b>"}
    suites = {
        "archived": {"from": {"path": "logs-of-oneflow.zip", "window": WINDOW}},
        "odd": {"from": {"path": "2n8g", "window": WINDOW}, "batch_size": 128},
        "hostile": {"from": hostile, "batch_size": 8},
        "nothing": {"from": "nothing"},
    }
    benchmark.configure(suites=[SUITE | {"name": name} | one for name, one in suites.items()])
    assert "Traceback" not in benchmark.made()

    def table(suite: str, name: str) -> pd.DataFrame:
        return pd.read_csv(folder / f"results/suites/{suite}/{name}.csv")

    # Each archive rebuilds to the same tables.
    for suite in suites:
        file, there = f"archive/{suite}.zip", tmp_path / suite
        benchmark.said("reperf", "archive", "verify", file)
        if suite in ("archived", "odd"):
            benchmark.said("reperf", "archive", "rebuild", file, "--to", str(there))
            for name in ("measurements", "summary"):
                made = f"results/suites/{suite}/{name}.csv"
                assert (there / made).read_bytes() == (folder / made).read_bytes()

    cells = table("archived", "summary").set_index("topology")
    assert list(cells["system"]) == ["oneflow", "oneflow"]
    assert set(cells["source"]) == {"logs-of-oneflow.zip"}
    two = cells.loc["2n8g"]
    assert (two["status"], two["n"], two["batch_size_per_device"]) == ("partial", 3, 128)
    assert "1 of 4 repeats not measured; refused: too short" in two["reason"]
    assert round(two["throughput_min"], 2) == 5915.65
    assert (two["speedup"], two["efficiency"]) == (16.0, 1.0)
    for kind in ("throughput", "speedup"):
        assert (folder / f"figures/archived-{kind}.svg").stat().st_size > 0
    assert not (folder / "results/runs").exists()

    # Names that look like times of the day, or like words of a shell.
    measured = table("odd", "measurements")
    assert set(measured["log"]) == {f"2n8g/{name}" for name in ODD}
    assert set(measured["status"]) == {"ok"}
    assert {path.name for path in (tmp_path / "odd/from/2n8g").iterdir()} == set(ODD)

    statuses = table("hostile", "measurements")["status"]
    assert statuses.value_counts().to_dict() == {"refused": len(HOSTILE), "ok": 1}
    assert set(table("nothing", "measurements")["status"]) == {"refused"}
    page = (folder / "results/report.md").read_text()
    assert "no known format" in page
    assert "logs-of-oneflow.zip" in page

    # Logs that have changed are measured again.
    assert benchmark.planned() == {}
    with zipfile.ZipFile(folder / "logs-of-oneflow.zip", "a") as members:
        members.writestr("oneflow/2n8g/r50_b128_fp32_5.log", RESNET50)
    planned = benchmark.planned()
    assert {"measure", "summarise", "draw_figures", "report", "archive"} <= planned.keys()
    assert "train" not in planned


@pytest.mark.long
def test_own_runs_and_logs_of_others_share_a_table(finished_benchmark: Benchmark):
    folder = finished_benchmark.folder
    runs = folder / "results/runs/small/stand-in"
    shutil.copytree(runs, folder / "earlier")
    small, synthetic = TOY["suites"]
    finished_benchmark.configure(suites=[small | {"from": ["earlier"]}, synthetic])
    assert "train" not in finished_benchmark.planned()
    finished_benchmark.made("results/summary.csv")
    cells = pd.read_csv(folder / "results/suites/small/summary.csv", keep_default_na=False)
    assert list(cells["source"]) == ["", "", "earlier", "earlier"]
    ours, theirs = cells[cells["source"] == ""], cells[cells["source"] != ""]
    assert list(ours["n"]) == [2, 2]
    # The same runs, once more, are no repeats.
    assert list(theirs["n"]) == [0, 0]
    assert all("counted already, as results/runs/small/" in one for one in theirs["reason"])


def test_logs_that_are_not_there_are_one_line(benchmark: Benchmark):
    benchmark.configure(suites=[SUITE | {"name": "theirs", "from": "nowhere.zip"}])
    said = benchmark.refused("--dry-run")
    assert "config.yaml: suite theirs: from: nowhere.zip is not there; allowed: " in said
