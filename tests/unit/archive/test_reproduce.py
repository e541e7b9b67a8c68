"""What measures an archive's suite again, and the verdict about it."""

import json
import zipfile
from pathlib import Path

import pytest
from reperf.archive import reproduce
from reperf.archive.reproduce import CONFIGURATION, prepare
from reperf.commands.reproduce import verdict_of
from reperf.config import load_report
from reperf.errors import ReperfError
from reperf.files import sha256
from reperf.layout import ROOT
from reperf.measuring.comparison_output import compare_paths

from tests.helpers.report_tables import ROW, STEADY, written_report
from tests.unit.archive.suites import archive_suite, report_of, rewritten


def test_a_folder_is_prepared_with_the_configuration_and_the_locks(archived, tmp_path):
    prepared = prepare(archived, tmp_path / "again")
    assert (prepared.locks, prepared.code) == ((), ())
    again = json.loads((tmp_path / "again" / CONFIGURATION).read_text())
    assert again["reproduces"] == prepared.archive_sha256 == sha256(archived)
    report = load_report(again, "again")
    assert [suite.name for suite in report.suites] == ["resnet50"]
    for name in ("Snakefile", "envs/pytorch.txt", "workflow/rules/train.smk"):
        assert (tmp_path / "again" / name).read_bytes() == (ROOT / name).read_bytes()
    assert prepare(archived, tmp_path / "again") == prepared  # goes on


def test_an_entrys_own_lock_comes_along(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "1126").mkdir()
    lock = tmp_path / "1126/lock.txt"
    lock.write_bytes((ROOT / "envs/pytorch.txt").read_bytes() + b"# of a night\n")
    nightly = {"system": "pytorch", "lock": str(lock), "label": "nightly"}
    asked = report_of(["pytorch", nightly], repeats=1, topologies=["1n1g"])
    archive = archive_suite(asked)
    content = lock.read_bytes()
    lock.unlink()
    prepare(archive, tmp_path / "again")
    report = load_report(json.loads((tmp_path / "again" / CONFIGURATION).read_text()), "again")
    locks = [entry.lock for entry in report.suites[0].entries]
    assert locks[0] is None
    assert (tmp_path / "again" / str(locks[1])).read_bytes() == content


@pytest.mark.parametrize("its_code", [False, True])
def test_its_trainers_run_only_if_asked_for(archived, tmp_path, its_code):
    names = ["envs/pytorch.txt", "workflow/workloads/resnet50.yaml"]
    changed = rewritten(
        archived, {name: b"# another\n" + (ROOT / name).read_bytes() for name in names}
    )
    prepared = prepare(changed, tmp_path / "again", its_code=its_code)
    assert [prepared.locks, prepared.code] == [(names[0],), (names[1],)]
    taken = [(tmp_path / "again" / name).read_bytes().startswith(b"# another") for name in names]
    assert taken == [True, its_code]
    assert prepared.with_its_code == its_code
    assert prepare(changed, tmp_path / "again").with_its_code == its_code  # a second call goes on
    assert not (ROOT / names[0]).read_bytes().startswith(b"# another")


def test_a_folder_of_something_else_is_refused(archived, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("")
    with pytest.raises(ReperfError, match="mine: exists already; allowed: a new or empty folder"):
        prepare(archived, tmp_path / "mine")


def test_what_is_no_archive_of_a_suite_is_refused(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("notes.txt", "")
    with pytest.raises(ReperfError, match=r"other\.zip: 'manifest-sha256.txt' is missing"):
        prepare(tmp_path / "other.zip", tmp_path / "again")
    assert not (tmp_path / "again").exists()
    monkeypatch.setattr(reproduce, "ROOT", tmp_path)
    with pytest.raises(ReperfError, match="which a wheel cannot; allowed: in a clone of reperf"):
        prepare(tmp_path / "other.zip", tmp_path / "again")


@pytest.mark.parametrize(
    ("factor", "n", "changes", "verdict", "status"),
    [
        (1.001, 7, {}, "reproduced within 1 %: 1 cell", 0),
        (0.95, 7, {}, "not reproduced within 1 %: small pytorch 1n2g", 1),
        (1.05, 7, {}, "not reproduced within 1 %: small pytorch 1n2g", 1),
        (1.0, 2, {}, "cannot tell whether it is reproduced within 1 %: 0 of 1 cells", 3),
        (1.0, 7, {"status": "failed", "throughput": None}, "not reproduced within 1 %: small", 1),
        (1.0, 7, {"suite": "other"}, "cannot tell whether it is reproduced within 1 %: 0 of 0", 3),
    ],
)
def test_the_verdict_is_one_of_equivalence(tmp_path: Path, factor, n, changes, verdict, status):  # noqa: PLR0917
    rows = [
        ROW | {"repeat": repeat, "throughput": value * factor} | changes
        for repeat, value in enumerate(STEADY[:n], 1)
    ]
    base, new = written_report(tmp_path / "old"), written_report(tmp_path / "new", rows=rows)
    words, code = verdict_of(compare_paths(base, new, 0.01))
    assert words.startswith(verdict)
    assert code == status
