"""Archives of real runs: measured, kept, measured again, and compared with a later report.

That one gives its tables and figures again, to the byte, test_wheel.py shows.
"""

import json
import re
from pathlib import Path
from zipfile import ZipFile

import pytest
from reperf.files import sha256
from reperf.tables import read_measurements

from tests.helpers.small_benchmark import Benchmark

ARCHIVE = "archive/small-synthetic.zip"


def test_an_archive_is_measured_by_the_window_that_it_records(finished: Path):
    said = Benchmark(finished).said("reperf", "measure", "--json", "archive/small.zip")
    found = [json.loads(line) for line in said.splitlines()]
    table = read_measurements(finished / "results/suites/small/measurements.csv")
    assert [one["throughput"] for one in found] == list(table["throughput"])
    assert {(one["first"], one["last"]) for one in found} == {(2, 4)}
    # One that is asked for by hand goes before it.
    answer = Benchmark(finished).call("reperf", "measure", "--window", "1:4", "archive/small.zip")
    assert answer.stdout.count("1:4") == len(table)


@pytest.mark.long
def test_the_report_names_its_archives_and_another_report_keeps_them(finished_benchmark):
    folder = finished_benchmark.folder
    file = folder / "archive/small.zip"
    content, digest = file.read_bytes(), sha256(file)
    assert digest in (folder / "results/report.html").read_text()
    assert digest in (folder / "results/report.md").read_text()
    finished_benchmark.configure(title="another report")
    told = finished_benchmark.made()
    (kept,) = folder.glob("archive/small.*-*.zip")
    assert kept.stem.endswith(f"-{digest[:8]}")
    assert kept.read_bytes() == content
    said = f"archive/small.zip is of another configuration: it is kept as archive/{kept.name}"
    assert told.count(said) == 1
    page = (folder / "results/report.html").read_text()
    assert sha256(file) in page
    assert digest not in page
    verified = finished_benchmark.said("reperf", "archive", "verify", str(kept), str(file))
    assert verified.count("all as they were archived") == 2


@pytest.mark.long
def test_an_archive_is_measured_again_by_its_lock_and_named_by_the_new_one(finished_benchmark):
    folder = finished_benchmark.folder
    lock = folder / "envs/stand-in.txt"
    archived = lock.read_bytes()
    lock.write_bytes(archived + b"# of another day\n")
    (folder / "workflow/trainers/note.py").write_text("")
    call = ("reperf", "reproduce", ARCHIVE, "--to", "again")
    answer = finished_benchmark.call(*call)
    assert answer.returncode in (1, 3), answer.stdout  # of a run or two, nothing is sure
    assert "differs, the archive's runs: envs/stand-in.txt" in answer.stdout
    assert answer.stdout.splitlines()[-1].startswith(("cannot tell whether", "not reproduced"))
    assert (folder / "again/envs/stand-in.txt").read_bytes() == archived
    digest = sha256(folder / ARCHIVE)
    with ZipFile(folder / "again" / ARCHIVE) as archive:
        assert json.loads(archive.read("config.json"))["reproduces"] == digest
        crate = json.loads(archive.read("ro-crate-metadata.json"))["@graph"]
    assert {"@id": f"urn:sha256:{digest}"} in [one.get("isBasedOn") for one in crate]
    finished_benchmark.said("reperf", "archive", "verify", f"again/{ARCHIVE}")
    other = finished_benchmark.call("reperf", "reproduce", "archive/small.zip", "--to", "again")
    assert other.returncode == 2
    assert re.search(r"again: reproduces archive \w{12}, not \w{12}; allowed:", other.stdout)


@pytest.mark.long
def test_a_report_compares_itself_with_its_baseline(finished_benchmark: Benchmark):
    finished_benchmark.configure(baseline="nowhere.zip")
    said = finished_benchmark.refused("results/report.html")
    assert "baseline: nowhere.zip: no such file or folder; allowed: a report's" in said
    baseline = finished_benchmark.folder / "before.zip"
    (finished_benchmark.folder / "archive/small.zip").rename(baseline)
    (finished_benchmark.folder / ARCHIVE).rename(finished_benchmark.folder / "synthetic.zip")
    finished_benchmark.configure(baseline="before.zip")
    assert "train" not in finished_benchmark.planned("results/report.html")
    finished_benchmark.made("results/report.html")
    page = (finished_benchmark.folder / "results/report.html").read_text(encoding="utf-8")
    assert "Compared with before.zip" in page
    assert "the same logs on both sides: 2" in page  # nothing was trained since
    with ZipFile(finished_benchmark.folder / "archive/small.zip") as archive:
        assert json.loads(archive.read("config.json"))["baseline"] is None
