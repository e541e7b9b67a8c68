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


def test_of_few_cells_there_is_no_threshold(noise, tmp_path):
    sides = [campaign(tmp_path / str(seed), seed, cells=1) for seed in (1, 2)]
    status, out, _ = noise(*sides)
    assert status == 0
    assert "a threshold needs 6 differences or more" in out.splitlines()[-1]
    assert json.loads(noise(*sides, "--json")[1])["threshold"] is None


def test_noise_beyond_what_compare_takes_is_said_to_be_so(noise, tmp_path):
    sides = [campaign(tmp_path / str(seed), seed, between=0.25) for seed in (1, 2, 3)]
    status, out, _ = noise(*sides)
    assert status == 0
    assert "reperf compare allows thresholds up to 50%: make the reports on" in out.splitlines()[-1]


def test_another_build_is_said_first(noise, tmp_path):
    keys = ("1:a build=lock 1", "1:b build=lock 2")
    sides = [campaign(tmp_path / str(seed), seed, key=key) for seed, key in enumerate(keys)]
    assert noise(*sides)[1].startswith("differs: build: lock 1 -> lock 2\n")


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"unit": "tokens/s"}, 3, "s0 pytorch 1n2g: not compared: unit images/s -> tokens/s"),
        ({"precision": "amp"}, 3, "no cell can be compared, so the noise is unknown"),
    ],
)
def test_reports_without_a_comparable_cell_have_no_noise(noise, tmp_path, changes, status, words):
    sides = campaign(tmp_path / "a", 1), campaign(tmp_path / "b", 2, **changes)
    assert noise(*sides)[0] == status
    assert words in noise(*sides)[1]


def test_one_report_is_none_to_compare(noise, tmp_path):
    status, _, err = noise(campaign(tmp_path / "a", 1))
    assert (status, len(err.splitlines())) == (2, 1)
