"""An archive's suite measured again, and a report that compares itself with an earlier one."""

import json
import re
from zipfile import ZipFile

import pytest
from reperf.files import sha256

from tests.helpers.small_benchmark import Benchmark

pytestmark = pytest.mark.long
ARCHIVE = "archive/small-synthetic.zip"


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
