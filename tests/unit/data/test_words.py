"""Text to parts of words' ids, and the skip-gram pairs that ranks read of them."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from reperf.data import text_files
from trainers.inputs.words import pairs

from tests.unit.data.sets import batches, convert, small, write

LINES = [
    f"The cat\u2019s {size} fish, THE fish; x{number}\n" for number, size in enumerate("ab" * 60)
]
TEXT = "".join(LINES)
NEAR = {
    (int(line[at]), int(line[at + step]))
    for line in ("123010", "124010")
    for at in range(6)
    for step in (-2, -1, 1, 2)
    if 0 <= at + step < 6
}
"""The pairs of two lines, up to a distance of 2."""


def ids_in(folder: Path) -> list[int]:
    return np.concatenate([np.fromfile(p, "<u4") for p in sorted(folder.glob("part-*"))]).tolist()


def test_frequent_words_become_their_places_in_the_vocabulary(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "PIECE", 300)
    manifest = convert(small("words", write(tmp_path / "text.txt", TEXT)), tmp_path, workers=2)
    vocabulary = (tmp_path / "vocab.txt").read_text()
    assert vocabulary == "fish 240\nthe 240\ncat\u2019s 120\na 60\nb 60\n"
    ids = ids_in(tmp_path)
    assert [one for one in ids if one < 5] == [1, 2, 3, 0, 1, 0, 1, 2, 4, 0, 1, 0] * 60
    lines = "".join(map(str, ids)).split("5")
    assert sorted(filter(None, lines)) == ["123010"] * 60 + ["124010"] * 60
    assert (manifest.vocabulary, manifest.words_read, manifest.words_known) == (5, 840, 720)
    assert manifest.words == 720


@pytest.mark.parametrize(("least", "words"), [(60, 5), (61, 3)])
def test_a_word_is_known_that_is_there_as_often_as_asked(tmp_path, least, words):
    text = write(tmp_path / "text.txt", TEXT)
    assert convert(small("words", text, least_count=least), tmp_path).vocabulary == words


def test_words_are_thinned_out_by_their_frequency(tmp_path):
    text = write(tmp_path / "text.txt", TEXT * 50)
    convert(small("words", text, thinning=0.05), tmp_path)
    kept = Counter(ids_in(tmp_path))
    for word, count in ((0, 12_000), (1, 12_000), (2, 6_000), (4, 3_000)):
        rarity = 0.05 * 42_000 / count
        assert kept[word] == pytest.approx(count * min(1, rarity**0.5 + rarity), rel=0.05)


def test_pairs_are_those_within_a_line_and_a_distance():
    ids, distances = np.array([7, 3, 4, 9, 5, 6, 9, 8]), np.array([1, 2, 1, 9, 5, 1, 9, 3])
    wanted = [[7, 3, 1], [3, 7, 1], [3, 4, 0], [4, 3, 1], [5, 6, 1], [6, 5, 1]]
    assert pairs(ids, 9, distances).tolist() == wanted
    assert pairs(np.array([9, 9]), 9, np.array([1, 1])).shape == (0, 3)
    assert pairs(np.zeros(0, np.int64), 9, np.zeros(0, np.int64)).shape == (0, 3)


def test_ranks_read_pairs_of_their_own_parts_the_same_each_time(tmp_path):
    convert(small("words", write(tmp_path / "text.txt", TEXT)), tmp_path / "words")
    for rank in (0, 1):
        read, again = (
            batches("words", tmp_path / "words", 200, 10, rank=rank, ranks=2) for _ in range(2)
        )
        columns = [np.concatenate(one) for one in zip(*read, strict=True)]
        same = [np.concatenate(one) for one in zip(*again, strict=True)]
        assert all(map(np.array_equal, columns, same))
        centres, contexts, negatives, firsts = columns
        assert {*zip(centres.tolist(), contexts.tolist(), strict=True)} == NEAR
        assert negatives.shape == (2000, 3)
        # Each of 360 words a pass has pairs: with a reach of 1 a line has 10, with 2 it has 18.
        assert firsts.sum() == pytest.approx(2000 * 6 / 14, rel=0.05)
    counts = np.bincount(negatives.ravel()) / negatives.size
    wanted = np.array([240, 240, 120, 60, 60]) ** 0.75
    assert counts == pytest.approx(wanted / wanted.sum(), abs=0.02)
