"""Lines of clicks to parts of rows, and the batches that ranks read of them."""

import gzip
import zlib
from argparse import Namespace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from reperf.data.clicks import convert as converting
from reperf.data.clicks.convert import convert
from reperf.data.clicks.embedded import WORDS
from reperf.data.clicks.embedded import make as make_clicks
from reperf.data.clicks.lines import CLIPS, ROW
from reperf.data.clicks.manifest import ClickManifest, ClickSettings
from trainers.contract.steplog import Refused
from trainers.inputs.clicks import Clicks

from tests.helpers.refusal import refused_in_one_line

ROWS = 1_000_001
FIRST = ["1", "3", "-2", "", "0", "64000", *8 * ["12"], "68fd1e64", "", *24 * ["00ff00aa"]]


def settings(clicks: Path, parts: int = 2) -> ClickSettings:
    return ClickSettings(clicks=str(clicks), parts=parts, seed=1)


def flags(folder: Path, batch_size: int) -> Namespace:
    return Namespace(data=str(folder), batch_size=batch_size, shape={"rows": ROWS})


@pytest.fixture(scope="module")
def embedded(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("clicks") / "clicks.txt"
    make_clicks(path)
    return path


def head_of(embedded: Path, path: Path, lines: int) -> list[list[str]]:
    """Write the first lines to a file of their own, which ends without the end of a line."""
    with embedded.open() as stream:
        text = "".join(islice(stream, lines))
    path.write_text(text.rstrip("\n"))
    return [line.split("\t") for line in text.splitlines()]


def rows_in(folder: Path) -> np.ndarray:
    return np.concatenate([np.fromfile(path, ROW) for path in sorted(folder.glob("part-*"))])


def test_rows_are_what_a_plain_reading_of_the_lines_gives(embedded, tmp_path, monkeypatch):
    """Whatever the pieces and the workers: zlib's CRC-32, and int() of each number."""
    lines = head_of(embedded, tmp_path / "own.txt", 700)
    for piece, workers in ((1 << 20, 1), (5000, 3)):
        monkeypatch.setattr(converting, "PIECE", piece)
        manifest = convert(
            settings(tmp_path / "own.txt"), tmp_path / "rows", "rows", workers=workers
        )
        rows = rows_in(tmp_path / "rows")
        assert rows["label"].tolist() == [int(line[0]) for line in lines]
        numbers = [[int(one or 0) for one in line[1:14]] for line in lines]
        assert np.array_equal(rows["dense"], (numbers / CLIPS).astype(np.float32))
        assert rows["slots"].tolist() == [
            [zlib.crc32(f"{column}{line[column]}".encode()) for column in range(14, 40)]
            for line in lines
        ]
        assert (manifest.samples, manifest.clicked) == (700, rows["label"].sum())
        assert [part.samples for part in manifest.parts] == [
            len(np.fromfile(tmp_path / "rows" / part.name, ROW)) for part in manifest.parts
        ]


def test_the_embedded_clicks_are_as_uneven_as_criteos_and_can_be_learnt(embedded, tmp_path):
    convert(settings(embedded), tmp_path / "rows", "rows", workers=1)
    rows = rows_in(tmp_path / "rows")
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
    for slot, words in enumerate(WORDS):
        if words < 1000:
            for word in np.unique(seen["slots"][:, slot]):
                rate = seen["label"][seen["slots"][:, slot] == word].mean()
                told[unseen["slots"][:, slot] == word] += np.log(rate + 0.01)
    clicked = unseen["label"] == 1
    assert told[clicked].mean() > told[~clicked].mean() + 0.5 * told.std()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda line: line[:-1], "39 columns; allowed: 40, 0 or 1, 13 integers and 26 words"),
        (lambda line: [], "1 columns; allowed: 40"),
        (lambda line: ["2", *line[1:]], "column 1: got '2'; allowed: 0 or 1"),
        (lambda line: ["", *line[1:]], "column 1: got ''; allowed: 0 or 1"),
        (lambda line: ["10", *line[1:]], "column 1: got '10'; allowed: 0 or 1"),
        (lambda line: [line[0], "1.5", *line[2:]], "column 2: got '1.5'; allowed: a whole number"),
        (lambda line: [line[0], "-", *line[2:]], "column 2: got '-'; allowed: a whole number"),
        (
            lambda line: [*line[:13], "9" * 19, *line[14:]],
            "column 14: got '9999999999999999999'; a",
        ),
        (
            lambda line: [*line[:-1], "xyzw0000"],
            "column 40: got 'xyzw0000'; allowed: 8 hexadecimal",
        ),
        (lambda line: [*line[:14], "0123456", *line[15:]], "column 15: got '0123456'; allowed: 8"),
        (lambda line: [*line[:-1], line[-1] + "\r"], "column 40: got '00ff00aa\\r'; allowed: 8"),
    ],
)
def test_a_bad_line_is_refused_by_file_line_and_column(tmp_path, monkeypatch, change, fault):
    monkeypatch.setattr(converting, "PIECE", 1000)
    lines = 40 * [FIRST]
    lines[30] = change(FIRST)
    own = tmp_path / "own.txt"
    own.write_bytes("".join("\t".join(line) + "\n" for line in lines).encode())
    with refused_in_one_line(f"{own}, line 31: {fault}"):
        convert(settings(own), tmp_path / "rows", "rows", workers=1)
    assert not list((tmp_path / "rows").glob("*"))


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", ": an empty file; allowed: lines of 0 or 1, 13 integers"),
        (gzip.compress(b"0", mtime=0), ": compressed by gzip; allowed: lines of 0 or 1"),
        (
            "\t".join(FIRST).encode() + b"\n",
            ": part 1 of 2 would hold no line; allowed: at least one for",
        ),
        (b"x" * 10_000, ", line 1: more than 4096 bytes; allowed: 0 or 1"),
    ],
)
def test_a_file_of_too_little_or_of_no_lines_is_refused(tmp_path, content, fault):
    own = tmp_path / "own.txt"
    own.write_bytes(content)
    with refused_in_one_line(f"{own}{fault}"):
        convert(settings(own), tmp_path / "rows", "rows", workers=1)


def test_ranks_share_the_rows_and_read_each_batch_once_a_turn(embedded, tmp_path):
    head_of(embedded, tmp_path / "own.txt", 1000)
    folder = tmp_path / "rows"
    convert(settings(tmp_path / "own.txt", parts=4), folder, "rows", workers=1)
    rows = rows_in(folder)
    where = {row["slots"].tobytes(): number for number, row in enumerate(rows)}
    read = []
    for rank in range(2):
        batches = list(islice(Clicks(flags(folder, 100), rank, 2), 4))
        for dense, slots, labels in batches:
            assert (dense.dtype, slots.dtype, labels.dtype) == (np.float32, np.int64, np.int64)
            at = [
                number for number in range(1000) if np.array_equal(rows["dense"][number], dense[0])
            ]
            first = next(one for one in at if (rows["slots"][one] % ROWS == slots[0]).all())
            own = rows[first : first + 100]
            assert np.array_equal(own["dense"], dense)
            assert np.array_equal(own["slots"] % ROWS, slots)
            assert np.array_equal(own["label"], labels)
            read.append(first)
    assert len(where) == 1000
    assert len(set(read)) == 8
    assert max(read[:4]) < 500 <= min(read[4:])


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (
            lambda folder: None,
            r"rank 1 has parts of up to \d+ rows; allowed: 5000 or more, a batch",
        ),
        (
            lambda folder: (folder / "part-00001").write_bytes(bytes(161)),
            "part-00001: has 161 bytes; allowed: whole rows of 160",
        ),
        (
            lambda folder: (folder / "manifest.json").write_text("[]"),
            "manifest.json: is no manifest of clicks; allowed: a folder that reperf has converted",
        ),
    ],
)
def test_rows_that_give_no_batch_are_refused(tmp_path, spoil, fault):
    own = tmp_path / "own.txt"
    own.write_text(40 * ("\t".join(FIRST) + "\n"))
    convert(settings(own), tmp_path / "rows", "rows", workers=1)
    ClickManifest.read(tmp_path / "rows/manifest.json")
    spoil(tmp_path / "rows")
    with pytest.raises(Refused, match=fault):
        Clicks(flags(tmp_path / "rows", 5000), 1, 2)
