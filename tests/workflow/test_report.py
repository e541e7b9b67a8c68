"""The whole way from images to the report, and what is run again when something changes."""

import json
import re
import shutil
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import simplejpeg
from reperf.layout import FIGURE_KINDS
from reperf.measuring.marks import BOUND_BY_LOADER, WAITED

from tests.helpers.small_benchmark import ROOT, TOY, Benchmark

SUITE_FILES = [
    f"figures/small-{kind}.{suffix}" for kind in FIGURE_KINDS for suffix in ("svg", "png")
]


def test_one_call_gives_the_whole_report(finished: Path):
    for name in [
        "results/report.html",
        "results/report.md",
        "results/published.html",
        "results/summary.csv",
        "results/measurements.csv",
        "archive/small.zip",
        "archive/small-synthetic.zip",
        *SUITE_FILES,
    ]:
        assert (finished / name).stat().st_size > 0, name
    summary = pd.read_csv(finished / "results/summary.csv")
    cells = summary.set_index(["suite", "system", "topology"]).sort_index()
    measured = cells.loc[("small", "stand-in")]
    assert list(measured["status"]) == ["ok", "ok"]
    assert (measured["throughput_median"] > 0).all()
    assert measured.loc["1n1g", "speedup"] == 1
    cannot = cells.loc[("small-synthetic", "stand-in-16", "1n1g")]
    reason = "Stand-in 16 has no fp32 training on cpu"
    assert (cannot["status"], cannot["reason"]) == ("unsupported", reason)


def test_a_second_call_says_that_there_is_nothing_to_do(finished_benchmark: Benchmark):
    assert "Nothing to be done" in finished_benchmark.made()


def test_runs_train_repeat_by_repeat_and_never_overlap(finished: Path):
    runs = finished.glob("results/runs/*/*/*/*/run.json")
    records = sorted((json.loads(run.read_text()) for run in runs), key=lambda run: run["started"])
    assert [record["run"]["repeat"] for record in records] == [1, 1, 1, 2, 2]
    assert all(before["ended"] <= after["started"] for before, after in pairwise(records))


def test_every_measurement_traces_back_to_its_log_and_record(finished: Path):
    runs = pd.read_csv(finished / "results/measurements.csv")
    assert len(runs) == 5
    for run in runs.itertuples():
        record = json.loads((finished / run.log).with_name("run.json").read_text())
        assert record["log_sha256"] == run.log_sha256
        assert record["status"] == "ok"
        packages = {name: version(name) for name in ("idna", "numpy")}
        assert record["environment"]["packages"] == packages
        assert (run.hosts, run.date) == (record["host"]["hostname"], record["started"])
        assert 0 <= record["load"]["during"] == run.load_during <= 1
        assert f"device=cpu, {record['host']['cpu']}; " in run.key
        assert record["run"]["batch_size"] * record["run"]["repeat"] == 2 * run.repeat


@pytest.mark.long
def test_the_report_for_one_node_says_that_it_needs_gpus(finished_benchmark: Benchmark):
    report = ROOT / "reports/one-node.yaml"
    answer = finished_benchmark.call(
        "bash", "-c", f"CUDA_VISIBLE_DEVICES= snakemake --configfile {report} -n"
    )
    assert answer.returncode != 0
    why = "device: got cuda, and no GPU is seen here"
    assert f"reperf: {report}: {why}" in answer.stdout


@pytest.mark.long
def test_the_whole_matrix_is_planned_without_an_error(benchmark: Benchmark):
    call = ("--profile", "slurm", "-n", "--quiet")  # whose profile names report and site
    assert "embedded_on_gpus: true" in benchmark.refused(*call).splitlines()[-1]
    own = benchmark.folder / "own/train/n00000001/1.JPEG"
    own.parent.mkdir(parents=True)
    own.write_bytes(simplejpeg.encode_jpeg(np.zeros((64, 64, 3), np.uint8)))
    site = benchmark.folder / "site.yaml"
    text = re.sub(r"# (data:\n|  - name: |    \w+: )", r"\1", site.read_text())
    (benchmark.folder / "own.txt").write_text("A sentence.\n\nAnother document.\n")
    text = text.replace("/datasets/imagenet", "own").replace("/datasets/wikipedia", "own.txt")
    site.write_text(text.replace("    vocabulary: /datasets/vocab.txt\n", ""))
    benchmark.made(*call)


@pytest.mark.long
def test_snakemakes_own_report_has_captions(finished_benchmark: Benchmark):
    finished_benchmark.made("--report", "snakemake-report.html")
    page = (finished_benchmark.folder / "snakemake-report.html").read_text()
    assert "A dot is a repeat" in page
    assert "How fast deep-learning frameworks train" in page


@pytest.mark.long
def test_a_cell_that_waits_for_its_loader_is_marked_and_its_synthetic_twin_is_not(begun_benchmark):
    benchmark = begun_benchmark
    slow = TOY["suites"][0] | {"name": "real", "shape": {"milliseconds": 5, "loading": 60}}
    benchmark.configure(
        topologies=["1n1g"],
        repeats=1,
        suites=[slow, slow | {"name": "synthetic", "input": "synthetic"}],
    )
    benchmark.made("results/summary.csv")
    summary = pd.read_csv(benchmark.folder / "results/summary.csv").set_index("suite")
    assert summary.loc["synthetic", "waited"] == 0
    assert summary.loc["real", "waited"] > BOUND_BY_LOADER
    # On a busy machine there are more marks.
    assert list(summary["marks"].fillna("").str.contains(WAITED)) == [True, False]


@pytest.mark.long
def test_a_run_under_another_variable_of_the_shell_is_no_repeat(finished_benchmark, monkeypatch):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    finished_benchmark.configure(repeats=3, topologies=["1n1g"], suites=TOY["suites"][:1])
    finished_benchmark.made("results/summary.csv")
    run = finished_benchmark.folder / "results/runs/small/stand-in/1n1g"
    inherited = [json.loads((run / f"{n}/run.json").read_text())["inherited"] for n in (2, 3)]
    assert [one.get("ONEDNN_MAX_CPU_ISA") for one in inherited] == [None, "SSE41"]
    summary = pd.read_csv(finished_benchmark.folder / "results/summary.csv")
    assert set(summary["n"]) == {2}
    assert summary["reason"].str.contains("ONEDNN_MAX_CPU_ISA was 'SSE41' and not set").all()
    assert summary["key"].notna().all()


@pytest.mark.long
def test_a_real_image_folder_is_used_instead_of_the_embedded_set(benchmark: Benchmark):
    benchmark.made("data/embedded/tfrecord/manifest.json")
    own = benchmark.folder / "own"
    shutil.copytree(benchmark.folder / "data/embedded/images/train", own / "train")
    benchmark.configure(data={"name": "own", "images": str(own), "parts": 2})
    benchmark.made("data/own/tfrecord/manifest.json")
    assert not Path(benchmark.folder, "data/own/images").exists()
    manifest = json.loads((benchmark.folder / "data/own/tfrecord/manifest.json").read_text())
    assert len(manifest["parts"]) == 2
    # They may lie below data/, too, and are no set that a rule makes.
    own.rename(benchmark.folder / "data/photos")
    suite = TOY["suites"][0] | {"input": "folder"}
    benchmark.configure(data={"name": "own", "images": "data/photos"}, suites=[suite])
    planned = benchmark.planned()
    assert planned["train"] == 4
    assert not {"convert", "make_set"} & planned.keys()


@pytest.mark.long
def test_text_is_converted_when_it_is_asked_for_otherwise_again(benchmark: Benchmark):
    manifest = benchmark.folder / "data/words/tfrecord/manifest.json"
    words = {"name": "words", "kind": "text", "parts": 2, "vocabulary_size": 2000}

    def made(**changes):
        benchmark.configure(data=[{}, words | changes])
        benchmark.made("data/words/tfrecord/manifest.json")
        return json.loads(manifest.read_text())

    first = made()
    assert first["settings"]["text"] == "data/words/text.txt"
    assert len(first["parts"]) == 2
    before = manifest.stat().st_mtime_ns
    made()
    assert manifest.stat().st_mtime_ns == before
    own = benchmark.folder / "own.txt"
    own.write_text("One sentence.\nAnd another one.\n\nA second document.\n" * 10)
    second = made(text="own.txt")
    assert (second["documents"], second["settings"]["text"]) == (11, "own.txt")
    vocabulary = benchmark.folder / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijkl"]))
    benchmark.configure(
        data=[{}, words | {"text": "new.txt", "vocabulary": "vocab.txt", "vocabulary_size": 16}]
    )
    manifest.unlink()
    for missing in ("new.txt: no such file or folder; allowed: ", "vocab.txt: has no [MASK]; all"):
        assert missing in benchmark.refused("data/words/tfrecord/manifest.json").splitlines()[-1]
        (benchmark.folder / "new.txt").write_text(own.read_text())
    assert not manifest.exists()


@pytest.mark.long
def test_the_doctor_looks_at_this_machine_and_the_report_shows_it(finished_benchmark):
    benchmark = finished_benchmark
    assert benchmark.planned() == {}
    benchmark.said("reperf", "doctor")
    kept = json.loads((benchmark.folder / "results/doctor.json").read_text())
    (node,) = kept["node_reports"]
    assert node["probe"]["host"]["hostname"] == node["node"]
    assert {tried["world_size"] for tried in kept["trials"]} == {2}
    assert [found["level"] for found in kept["findings"] if found["check"] == "answer"] == ["ok"]
    assert benchmark.planned() == {"report": 1, "complete": 1}
    said = benchmark.made()
    where = "The report is in results/report.html and results/report.md"
    assert said.splitlines()[-1] == where
    assert "What <code>reperf doctor</code> found" in (
        benchmark.folder / "results/report.html"
    ).read_text(encoding="utf-8")
    assert benchmark.planned() == {}
