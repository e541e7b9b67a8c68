"""`reperf history`: cells of many reports over time, and where they stepped."""

import json
import math
import random
import re
import shutil

import pytest
from reperf.measuring.history import steps_in

from tests.helpers.report_tables import STEADY, caller, written_report


@pytest.fixture
def history(capsys):
    return caller(capsys, "history")


@pytest.fixture
def nights(tmp_path):
    """Write a folder of ten nights; from the sixth on the build is another one, and slower."""

    def nights(level: float = 0.95, **last: object):
        chance = random.Random(4)
        for day in range(1, 11):
            new = day > 5
            factor = (level if new else 1.0) * (1 + 0.001 * chance.gauss(0, 1))
            changes = {"date": f"2026-11-{day:02}T03:00:00+00:00", "commit": f"{day:040x}"}
            changes |= {"key": f"1:k build=lock {'b' if new else 'a'}; device=cpu"}
            changes |= last if day == 10 else {}
            written_report(tmp_path / "nights" / f"night-{11 - day}", factor, **changes)
        return tmp_path / "nights"

    return nights


def test_a_step_is_marked_where_it_is_with_what_differs(history, nights):
    folder = nights()
    status, out, err = history(folder)
    assert (status, err) == (0, "")
    [row] = [line for line in out.splitlines() if line.startswith("small pytorch 1n2g  ")]
    assert re.search(r"-[45]\.\d\d % 2026-11-06$", row)
    assert "  differs: build: lock a -> lock b" in out.splitlines()
    [cell] = json.loads(history(folder, "--json")[1])["cells"]
    days = [point["date"][:10] for point in cell["points"]]
    assert days == [f"2026-11-{day:02}" for day in range(1, 11)]
    assert [step["at"] for step in cell["steps"]] == [5]
    sixth = cell["points"][5]
    assert (sixth["commits"], sixth["builds"]) == ([f"{6:040x}"], ["lock b"])
    assert cell["points"][0]["level"] == pytest.approx(100, rel=0.002)


@pytest.mark.parametrize(("level", "threshold"), [(1.0, "0%"), (0.95, "6%")])
def test_a_step_below_the_threshold_is_none(history, nights, level, threshold):
    answer = history(nights(level), "--threshold", threshold, "--json")
    assert [cell["steps"] for cell in json.loads(answer[1])["cells"]] == [[]]


def test_an_archive_beside_its_report_is_no_second_point(history, nights):
    folder = nights(log_sha256="a" * 64)
    shutil.copytree(folder / "night-1", folder / "copy")
    [cell] = json.loads(history(folder, "--json")[1])["cells"]
    assert len(cell["points"]) == 10


def test_what_the_newest_cannot_stand_beside_is_named(history, nights):
    status, out, _ = history(nights(first=5, last=65))
    assert status == 0
    assert "fewer than 5 points" in out
    assert out.count("not comparable: ") == 9
    assert "window 20:120 -> 5:65" in out


def test_the_page_stands_alone(history, nights, tmp_path):
    folder = nights(suite="small")
    (folder / "<b>x").mkdir()
    (folder / "<b>x" / "measurements.csv").write_text("suite\n")
    status, out, _ = history(folder, "--html", tmp_path / "page.html")
    assert status == 0
    assert "left out: " in out and "measurements.csv: column system is missing" in out
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;x" in text and "<b>x" not in text
    assert not re.search(r"(?:src|href)=.(?:https?:|/)", text)
    assert text.count("<circle") == 10 and text.count('class="step"') == 1
    assert f"commit of reperf: {6:040x}" in text


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: None, "nights: no such folder; allowed: a folder of archives or reports"),
        (lambda folder: folder.mkdir(), "nights: 0 reports in it; allowed: two or more archives"),
        (lambda folder: written_report(folder, date="2026-11-01T03:00:00"), "nights: 1 report in "),
        (written_report, "measurements.csv: does not say when it was measured, nor in its name"),
    ],
)
def test_what_is_no_history_is_one_line(history, tmp_path, make, words):
    make(tmp_path / "nights")
    status, out, err = history(tmp_path / "nights")
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert words in err


def test_a_folder_named_by_a_day_needs_no_other_date(history, tmp_path):
    for day in ("2026-11-01", "2026-11-02"):
        written_report(tmp_path / "nights" / day)
    [cell] = json.loads(history(tmp_path / "nights", "--json")[1])["cells"]
    assert [point["date"] for point in cell["points"]] == ["2026-11-01", "2026-11-02"]


@pytest.mark.parametrize("points", [5, 10, 40])
def test_normal_points_without_a_step_show_few(points):
    chance = random.Random(points)
    series = [[chance.gauss(0, 1) for _ in range(points)] for _ in range(300)]
    false = sum(len(steps_in(values, 1.0)) > 1 for values in series)
    assert false <= 15


def test_the_last_point_alone_can_be_a_step():
    assert steps_in([math.log(value) for value in [*STEADY, 95.0]], 0.002) == [0, 7]
