"""Looking for logs ends, whatever folder it starts in."""

import os
from pathlib import Path

import pytest
from reperf.config import load_report
from reperf.measuring import log_detection
from reperf.measuring.found_logs import files_of
from reperf.measuring.log_detection import files_below
from reperf.measuring.suite_rows import check_sources

from tests.helpers.refusal import refused_in_one_line

LICENSE = "Everyone is permitted to copy and distribute.\n" * 9


def check(path: Path | str) -> None:
    suite = {"name": "theirs", "workload": "resnet50", "precision": "fp32", "from": str(path)}
    check_sources(load_report({"suites": [suite]}))


def why_refused(path: Path | str) -> str:
    with refused_in_one_line("suite theirs: from: ") as refusal:
        check(path)
    return str(refusal.value)


def test_files_come_in_the_order_of_their_paths_and_links_to_folders_lead_nowhere(tmp_path):
    for name in ("b/2.log", "b/1.log", "a.log", "b/c/0.log", "picture.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    links = {"b/loop": tmp_path, "self.log": "self.log", "gone.log": "nowhere", "z.log": "a.log"}
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    os.mkfifo(tmp_path / "pipe.log")
    names = [path.relative_to(tmp_path).as_posix() for path in files_below(tmp_path)]
    assert names == ["a.log", "b/1.log", "b/2.log", "b/c/0.log", "picture.png", "z.log"]


def test_a_folder_of_too_much_is_refused_where_the_count_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(log_detection, "MOST_ENTRIES", 10)
    for number in range(11):
        (tmp_path / f"{number}.png").touch()
    assert f"{tmp_path}: holds more than 10 files and folders" in why_refused(tmp_path)


def test_the_whole_machine_is_no_folder_of_logs():
    assert "allowed: a folder of logs" in why_refused("/proc")


def test_what_is_neither_file_nor_folder_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.log")
    (tmp_path / "loop.log").symlink_to("loop.log")
    for path in (tmp_path / "pipe.log", tmp_path / "loop.log", Path("/dev/zero")):
        assert f"{path} is neither a file nor a folder" in why_refused(path)
    assert f"{tmp_path}/none is not there" in why_refused(tmp_path / "none")


@pytest.mark.parametrize(
    "name", ["a\\b.log", "a\nb.log", "a\x1b.log", "a\udcff.log", "a" * 240 + ".log"]
)
def test_a_log_that_no_archive_could_hold_is_refused_before_anything_starts(tmp_path, name):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / name).touch()
    message = why_refused(folder)
    assert repr(str(folder / name))[:-1][:300] in message
    assert "allowed: printed names of up to 230 bytes each" in message


@pytest.mark.parametrize("name", ["{repeat}.log", "a<results>.log"])
def test_a_log_whose_name_snakemake_would_fill_in_is_refused(tmp_path, name):
    (tmp_path / name).touch()
    assert f"{tmp_path}/{name}'; allowed: names without {{ and }}, and " in why_refused(tmp_path)


@pytest.mark.parametrize("name", ["run_12:30:01.log", "a b.log", "é.log", "*.log", "1:2.log"])
def test_odd_names_of_logs_are_taken(tmp_path, name):
    (tmp_path / name).touch()
    check(tmp_path)
    assert files_of(tmp_path) == [tmp_path / name]


def test_files_without_an_ending_are_taken_if_they_are_logs(tmp_path):
    (tmp_path / "LICENSE").write_text(LICENSE)
    assert f"{tmp_path}: no log is in it; allowed: .log, " in why_refused(tmp_path)
    lines = (f"step {number}, loss {9 - number / 10}\n" for number in range(20))
    (tmp_path / "workerlog.0").write_text("".join(lines))
    assert files_of(tmp_path) == [tmp_path / "workerlog.0"]
