"""Text to parts of words' ids, and the skip-gram pairs that ranks read of them."""

from argparse import Namespace
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from reperf.data.tokens import stream
from reperf.data.words.convert import convert
from reperf.data.words.manifest import WordSettings
from reperf.errors import ReperfError
from trainers.contract.steplog import Refused
from trainers.inputs.words import pairs, word_batches

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
SHAPE = {"vocabulary": 16, "window": 2, "negatives": 3}


def settings(text: Path, **changes) -> WordSettings:
    usual = {"least_count": 5, "thinning": 1.0, "parts": 4, "seed": 1}
    return WordSettings(words=str(text), **usual | changes)


@pytest.fixture
def text(tmp_path) -> Path:
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path / "text.txt"


def ids_in(folder: Path) -> list[int]:
    return np.concatenate([np.fromfile(p, "<u4") for p in sorted(folder.glob("part-*"))]).tolist()


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def test_frequent_words_become_their_places_in_the_vocabulary(text, tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "PIECE", 300)
    manifest = convert(settings(text), tmp_path / "words", "words", workers=2)
    vocabulary = (tmp_path / "words/vocab.txt").read_text()
    assert vocabulary == "fish 240\nthe 240\ncat\u2019s 120\na 60\nb 60\n"
    ids = ids_in(tmp_path / "words")
    assert [one for one in ids if one < 5] == [1, 2, 3, 0, 1, 0, 1, 2, 4, 0, 1, 0] * 60
    lines = "".join(map(str, ids)).split("5")
    assert sorted(filter(None, lines)) == ["123010"] * 60 + ["124010"] * 60
    assert (manifest.vocabulary, manifest.words_read, manifest.words_known) == (5, 840, 720)
    assert manifest.words == sum(part.words for part in manifest.parts) == 720
    alone = tmp_path / "one worker"
    convert(settings(text), alone, "words", workers=1)
    assert content(alone) == content(tmp_path / "words")


def test_words_are_thinned_out_by_their_frequency(text, tmp_path):
    text.write_text(TEXT * 50)
    convert(settings(text, thinning=0.05), tmp_path / "words", "words", workers=1)
    kept = Counter(ids_in(tmp_path / "words"))
    for word, count in ((0, 12_000), (1, 12_000), (2, 6_000), (4, 3_000)):
        rarity = 0.05 * 42_000 / count
        assert kept[word] == pytest.approx(count * min(1, rarity**0.5 + rarity), rel=0.05)


@pytest.mark.parametrize(
    ("written", "changes", "fault"),
    [
        (b"", {}, "text.txt: an empty text; allowed: text in UTF-8"),
        (
            b"a a\n" * 99 + b"\xff\n",
            {},
            r"text.txt: byte 396: got b'\\xff'; allowed: text in UTF-8",
        ),
        (
            b"one two\none three\n",
            {},
            r"text.txt: the most frequent word, 'one', is there 2 times; allowed: 5 or more \(lea",
        ),
        (b"?!\n", {}, "text.txt: holds no word; allowed: text"),
        (
            b"a\n" * 30,
            {"parts": 2},
            "text.txt: part [01] of 2 would hold no line with two words; allowed: more text for",
        ),
    ],
)
def test_a_text_that_cannot_be_converted_leaves_nothing(tmp_path, written, changes, fault):
    own = tmp_path / "text.txt"
    own.write_bytes(written)
    with pytest.raises(ReperfError, match=fault):
        convert(settings(own, **changes), tmp_path / "words", "words", workers=1)
    assert content(tmp_path / "words") == {}


def test_pairs_are_those_within_a_line_and_a_distance():
    ids, distances = np.array([7, 3, 4, 9, 5, 6, 9, 8]), np.array([1, 2, 1, 9, 5, 1, 9, 3])
    wanted = [(7, 3, 1), (3, 7, 1), (3, 4, 0), (4, 3, 1), (5, 6, 1), (6, 5, 1)]
    assert pairs(ids, 9, distances).tolist() == [list(one) for one in wanted]
    assert pairs(np.array([9, 9]), 9, np.array([1, 1])).shape == (0, 3)
    assert pairs(np.zeros(0, np.int64), 9, np.zeros(0, np.int64)).shape == (0, 3)


@pytest.fixture
def converted(text, tmp_path) -> Path:
    convert(settings(text), tmp_path / "words", "words", workers=1)
    return tmp_path / "words"


def batches(folder: Path, number=1, rank=0, ranks=1, size=10, **shape):
    flags = Namespace(data=str(folder), batch_size=size, shape=SHAPE | shape)
    return list(islice(word_batches(flags, rank, ranks, None), number))


def test_ranks_read_pairs_of_their_own_parts_the_same_each_time(converted):
    for rank in (0, 1):
        read = batches(converted, 200, rank, 2)
        again = batches(converted, 200, rank, 2)
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


@pytest.mark.parametrize(
    ("shape", "ranks", "fault"),
    [
        ({"vocabulary": 4}, 1, "words: has 5 words; allowed: up to 4, the vocabulary"),
        ({}, 3, "4 parts for 3 ranks; allowed: a multiple of them"),
    ],
)
def test_what_a_reader_cannot_read_is_refused_in_one_line(converted, shape, ranks, fault):
    with pytest.raises(Refused, match=fault):
        batches(converted, ranks=ranks, **shape)


def test_parts_and_folders_of_others_are_refused(converted):
    part = converted / "part-00000"
    whole = part.read_bytes()
    part.write_bytes(whole[:-1])
    with pytest.raises(Refused, match=r"part-00000: has \d+ bytes; allowed: whole ids of 4"):
        batches(converted)
    part.write_bytes(b"\xff" * len(whole))
    with pytest.raises(Refused, match="part-00000 at byte 0: got id 4294967295; allowed: up to 5"):
        batches(converted)
    part.write_bytes(whole)
    (converted / "vocab.txt").write_text("one\n")
    with pytest.raises(Refused, match=r"vocab.txt: is no vocabulary of 5 words and their counts"):
        batches(converted)
    (converted / "manifest.json").write_text("[]")
    with pytest.raises(Refused, match=r"manifest.json: is no manifest of words; allowed: a folder"):
        batches(converted)
