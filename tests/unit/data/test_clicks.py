"""Lines of clicks to parts of rows, and the batches that ranks read of them."""

import zlib
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from reperf.data import text_files
from reperf.data.clicks.convert import CLIPS, ROW, WORDS

from tests.unit.data.sets import batches, convert, small, write

ROWS = 1_000_001


@pytest.fixture
def head(embedded, tmp_path) -> Path:
    """The first lines of the embedded set; the last has no end."""
    with embedded("clicks")[0].open() as stream:
        return write(tmp_path / "own.txt", "".join(islice(stream, 1000)).rstrip("\n"))


def rows_in(folder: Path) -> np.ndarray:
    return np.concatenate([np.fromfile(path, ROW) for path in sorted(folder.glob("part-*"))])


def test_rows_are_what_a_plain_reading_of_the_lines_gives(head, tmp_path, monkeypatch):
    """zlib's CRC-32, and int() of each number."""
    lines = [line.split("\t") for line in head.read_text().splitlines()]
    numbers = [[int(one or 0) for one in line[1:14]] for line in lines]
    slots = [
        [zlib.crc32(f"{column}{line[column]}".encode()) for column in range(14, 40)]
        for line in lines
    ]
    monkeypatch.setattr(text_files, "PIECE", 5000)
    manifest = convert(small("clicks", head), tmp_path / "rows", workers=3)
    rows = rows_in(tmp_path / "rows")
    assert rows["label"].tolist() == [int(line[0]) for line in lines]
    assert np.array_equal(rows["dense"], (numbers / CLIPS).astype(np.float32))
    assert rows["slots"].tolist() == slots
    assert (manifest.samples, manifest.clicked) == (1000, rows["label"].sum())


def test_the_embedded_clicks_are_as_uneven_as_criteos_and_can_be_learnt(embedded):
    rows = rows_in(embedded("clicks")[1])
    assert len(rows) == 100_000
    assert 0.2 < rows["label"].mean() < 0.3
    assert (rows["dense"] == 0).mean() > 0.02
    different = np.array([len(np.unique(slot)) for slot in rows["slots"].T])
    assert (different <= np.array(WORDS) + 1).all()  # a gap is one more
    assert different.sum() > 200_000
    counts = np.unique(rows["slots"][:, 2], return_counts=True)[1]
    assert counts.max() > 5000  # of ten million words
    # A table of each word's share of clicks tells clicks of other lines from the rest.
    seen, unseen = rows[:80_000], rows[80_000:]
    told = np.zeros(len(unseen))
    for slot in np.flatnonzero(np.array(WORDS) < 1000):
        words, places = np.unique(rows["slots"][:, slot], return_inverse=True)
        known, new = places[:80_000], places[80_000:]
        rates = np.bincount(known, seen["label"], len(words)) / np.bincount(
            known, minlength=len(words)
        ).clip(1)
        told += np.log(rates[new] + 0.01)
    clicked = unseen["label"] == 1
    assert told[clicked].mean() > told[~clicked].mean() + 0.5 * told.std()


def test_ranks_share_the_rows_and_read_each_batch_once_a_turn(head, tmp_path):
    convert(small("clicks", head), tmp_path / "rows")
    rows = rows_in(tmp_path / "rows")
    slots_of = rows["slots"] % ROWS
    read = []
    for rank in range(2):
        for dense, slots, labels in batches(
            "clicks", tmp_path / "rows", 4, 100, rank=rank, ranks=2
        ):
            assert (dense.dtype, slots.dtype, labels.dtype) == (np.float32, np.int64, np.int64)
            (first,) = np.flatnonzero((slots_of == slots[0]).all(axis=1))
            own = rows[first : first + 100]
            assert np.array_equal(own["dense"], dense)
            assert np.array_equal(own["slots"] % ROWS, slots)
            assert np.array_equal(own["label"], labels)
            read.append(first)
    assert len(set(read)) == 8
    assert max(read[:4]) < 500 <= min(read[4:])
