"""Looking for logs ends, whatever folder it starts in."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from reperf.config import load_report
from reperf.measuring import log_detection
from reperf.measuring.found_logs import files_of
from reperf.measuring.log_detection import files_below
from reperf.measuring.suite_rows import check_sources

from tests.helpers.refusal import refused_in_one_line
from tests.unit.logs.asking import REAL


def check(source: object) -> None:
    suite = {"name": "theirs", "workload": "resnet50", "precision": "fp32", "from": source}
    check_sources(load_report({"suites": [suite]}))


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


def holding(*names: str, text: str = "") -> Callable[[Path], Path]:
    """Make a folder with files of these names: its path."""

    def make(folder: Path) -> Path:
        for name in names:
            (folder / name).write_text(text)
        return folder

    return make


LICENSE = "Everyone is permitted to copy and distribute.\n" * 9
NO_FILE, NO_NAME = "neither a file nor a folder", "allowed: printed names of up to 230 bytes each"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda folder: folder / "none", "/none is not there"),
        (lambda folder: {"path": str(folder), "format": "morse"}, "format 'morse'; allowed: build"),
        (lambda _: "/proc", "allowed: a folder of logs"),  # the whole machine
        (lambda _: "/dev/zero", f"/dev/zero is {NO_FILE}"),
        (lambda folder: os.mkfifo(folder / "a.log") or folder / "a.log", f"/a.log is {NO_FILE}"),
        (lambda folder: (folder / "a").symlink_to("a") or folder / "a", f"/a is {NO_FILE}"),
        (holding("LICENSE", text=LICENSE), ": no log is in it; allowed: .log, "),
        (holding(*(f"{n}.png" for n in range(11))), "holds more than 10 files and folders"),
        # No archive could hold it.
        *((holding(f"a{odd}b.log"), NO_NAME) for odd in ("\\", "\n", "\x1b", "\udcff", "a" * 240)),
        # Snakemake would fill it in.
        (holding("{repeat}.log"), "/{repeat}.log'; allowed: names without { and }, and "),
        (holding("a<results>.log"), "/a<results>.log'; allowed: names without { and }, and "),
    ],
)
def test_what_is_no_source_of_logs_is_one_line(tmp_path, monkeypatch, make, why):
    source = make(tmp_path)
    if "more than" in why:
        monkeypatch.setattr(log_detection, "MOST_ENTRIES", 10)
    with refused_in_one_line("suite theirs: from: ") as refusal:
        check(source if isinstance(source, dict) else str(source))
    assert why in str(refusal.value)


def test_two_sources_of_one_name_are_refused():
    with refused_in_one_line("") as refusal:
        check(["x/a.zip", "y/a.zip"])
    assert "suites.theirs.from: a.zip appears twice" in str(refusal.value)


@pytest.mark.parametrize("name", ["run_12:30:01.log", "a b.log", "é.log", "*.log", "1:2.log"])
def test_odd_names_of_logs_are_taken(tmp_path, name):
    check(str(holding(name)(tmp_path)))
    assert files_of(tmp_path) == [tmp_path / name]


def test_files_without_an_ending_are_taken_if_they_are_logs(tmp_path):
    steps = "".join(f"step {number}, loss {9 - number / 10}\n" for number in range(20))
    holding("LICENSE", text=LICENSE)(tmp_path)
    holding("workerlog.0", text=steps)(tmp_path)
    holding("workerlog.1", text=(REAL / "ran_mmengine.log").read_text())(tmp_path)
    assert files_of(tmp_path) == [tmp_path / "workerlog.0", tmp_path / "workerlog.1"]
