"""Archives of other reports are kept under names of their own."""

import re
from pathlib import Path

import pytest
from reperf.archive.container import Member, write
from reperf.archive.contents import config_of
from reperf.archive.kept import keep_others
from reperf.config import Report
from reperf.files import sha256
from reperf.member_names import CONFIG

from tests.unit.archive.suites import report_of

ARCHIVE = Path("archive/resnet50.zip")


def keep(report: Report) -> None:
    keep_others({"resnet50": report.model_dump_json(by_alias=True)})


@pytest.fixture
def lying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """The report whose archive lies in the working folder."""
    monkeypatch.chdir(tmp_path)
    report = report_of()
    write(ARCHIVE, [Member.of_bytes(CONFIG, config_of(report))])
    return report


def archives() -> list[str]:
    return sorted(path.name for path in ARCHIVE.parent.iterdir())


def test_an_archive_of_another_configuration_alone_is_kept_once_and_said(lying, caplog):
    content, digest = ARCHIVE.read_bytes(), sha256(ARCHIVE)
    signature = ARCHIVE.with_name("resnet50.zip.sig")
    signature.write_text("signed")
    keep(lying)  # the same: replaced
    assert archives() == ["resnet50.zip", "resnet50.zip.sig"]
    for _ in range(2):
        keep(report_of(repeats=3))
    kept, signed, *_ = archives()
    assert re.fullmatch(rf"resnet50\.\d{{4}}-\d\d-\d\d-{digest[:8]}\.zip", kept)
    assert archives() == [kept, f"{kept}.sig", "resnet50.zip", "resnet50.zip.sig"]
    assert caplog.messages == [
        f"{ARCHIVE} is of another configuration: it is kept as archive/{kept}"
    ]
    # What comes next writes a new file of the old name.
    ARCHIVE.unlink()
    ARCHIVE.write_bytes(b"new")
    assert ARCHIVE.with_name(kept).read_bytes() == content
    assert ARCHIVE.with_name(signed).read_text() == "signed"


def test_where_no_second_name_can_be_given_a_copy_is_made(lying, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.link", refuse)
    keep(report_of(title="another"))
    kept = ARCHIVE.with_name(archives()[0])
    assert kept.read_bytes() == ARCHIVE.read_bytes()
    assert kept.stat().st_ino != ARCHIVE.stat().st_ino


def test_a_file_that_is_no_archive_is_not_kept(lying):
    ARCHIVE.write_text("no zip")
    keep(report_of(repeats=3))
    assert archives() == ["resnet50.zip"]
    ARCHIVE.unlink()
    keep(report_of(repeats=3))
    assert not archives()
