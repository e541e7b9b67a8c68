"""`reperf noise`: how far numbers move between campaigns of one build."""

import json
import random

import pytest

from tests.helpers.report_tables import ROW, STEADY, caller, written_report


@pytest.fixture
def noise(capsys):
    return caller(capsys, "noise")


def campaign(folder, seed: int, cells: int = 8, between: float = 0.003, **changes):
    """A report whose cells moved by chance."""
    chance = random.Random(seed)
    rows = []
    for cell in range(cells):
        moved = 1 + between * chance.gauss(0, 1)
        rows += [
            ROW | {"suite": f"s{cell}", "repeat": repeat, "throughput": value * moved} | changes
            for repeat, value in enumerate(STEADY, 1)
        ]
    return written_report(folder, rows=rows)


def test_the_threshold_is_above_what_was_seen_and_what_such_noise_gives(noise, tmp_path):
    sides = [campaign(tmp_path / str(seed), seed) for seed in (1, 2, 3)]
    status, out, err = noise(*sides)
    assert (status, err) == (0, "")
    assert out.splitlines()[-1] == "reperf compare --threshold 1.4%"
    answer = json.loads(noise(*sides, "--json")[1])
    assert answer["option"] == "1.4%"
    assert [cell["campaigns"] for cell in answer["cells"]] == [3] * 8
    # 2.7 standard deviations of a difference of two campaigns are exceeded by one cell of 8 in 5 %.
    assert 2.7 * 0.003 * 2**0.5 < answer["threshold"] < 0.02
    assert answer["threshold"] >= max(cell["largest"] for cell in answer["cells"])


@pytest.mark.parametrize(
    ("cells", "between", "words"),
    [
        (1, 0.003, "a threshold needs 6 differences or more"),
        (8, 0.25, "reperf compare allows thresholds up to 50%: make the reports on"),
    ],
)
def test_the_last_line_says_why_there_is_no_threshold(noise, tmp_path, cells, between, words):
    sides = [campaign(tmp_path / str(seed), seed, cells, between) for seed in (1, 2, 3)]
    status, out, _ = noise(*sides[:2] if cells == 1 else sides)
    assert status == 0
    assert words in out.splitlines()[-1]


def test_another_build_is_said_first(noise, tmp_path):
    keys = ("1:a build=lock 1", "1:b build=lock 2")
    sides = [campaign(tmp_path / str(seed), seed, key=key) for seed, key in enumerate(keys)]
    assert noise(*sides)[1].startswith("differs: build: lock 1 -> lock 2\n")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"unit": "tokens/s"}, "s0 pytorch 1n2g: not compared: unit images/s -> tokens/s"),
        ({"precision": "amp"}, "no cell can be compared, so the noise is unknown"),
    ],
)
def test_reports_without_a_comparable_cell_have_no_noise(noise, tmp_path, changes, words):
    status, out, _ = noise(campaign(tmp_path / "a", 1), campaign(tmp_path / "b", 2, **changes))
    assert status == 3
    assert words in out


def test_one_report_is_none_to_compare(noise, tmp_path):
    status, _, err = noise(campaign(tmp_path / "a", 1))
    assert (status, len(err.splitlines())) == (2, 1)
