"""Clicks, pairs, tokens and words: parts against a plain reading, and the batches of ranks."""

import json
import zlib
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from reperf.data import text_files
from reperf.data.clicks.convert import CLIPS, ROW, WORDS
from reperf.data.kind import Manifest
from reperf.data.pairs.convert import english, german
from reperf.data.text_files import END
from reperf.files import sha256
from trainers.inputs.words import pairs
from trainers.recipes import transformer

from tests.helpers.written_files import write
from tests.unit.data.sets import batches, byte_pairs, convert, small

ROWS = 1_000_001


def numbers_in(folder: Path, kind="") -> list[np.ndarray]:
    """The numbers of each part, of the manifest's type if of no other."""
    kind = kind or f"<u{int(Manifest.read(folder / 'manifest.json').type[4:]) // 8}"
    return [np.fromfile(path, kind) for path in sorted(folder.glob("part-?????"))]


@pytest.fixture(scope="session")
def clicks(embedded, tmp_path_factory) -> Path:
    """The first lines of the embedded set; the last has no end."""
    with embedded("clicks")[0].open() as stream:
        first = "".join(islice(stream, 1000)).rstrip("\n")
    return write(tmp_path_factory.mktemp("clicks") / "own.txt", first)


def test_rows_are_what_a_plain_reading_of_the_lines_gives(clicks, tmp_path, monkeypatch):
    """zlib's CRC-32, and int() of each number."""
    lines = [line.split("\t") for line in clicks.read_text().splitlines()]
    numbers = [[int(one or 0) for one in line[1:14]] for line in lines]
    slots = [
        [zlib.crc32(f"{column}{line[column]}".encode()) for column in range(14, 40)]
        for line in lines
    ]
    monkeypatch.setattr(text_files, "PIECE", 5000)
    manifest = convert(small("clicks", clicks), tmp_path / "rows")
    rows = np.concatenate(numbers_in(tmp_path / "rows", ROW))
    assert rows["label"].tolist() == [int(line[0]) for line in lines]
    assert np.array_equal(rows["dense"], (numbers / CLIPS).astype(np.float32))
    assert rows["slots"].tolist() == slots
    assert (manifest.samples, manifest.clicked) == (1000, rows["label"].sum())


def test_the_embedded_clicks_are_the_same_each_time_and_as_uneven_as_criteos(embedded):
    lines, folder = embedded("clicks")
    assert sha256(lines)[:16] == "7492e75741fd34fb"
    rows = np.concatenate(numbers_in(folder, ROW))
    assert len(rows) == 100_000
    assert 0.2 < rows["label"].mean() < 0.3
    different = np.array([len(np.unique(slot)) for slot in rows["slots"].T])
    assert (different <= np.array(WORDS) + 1).all()  # a gap is one more
    assert different.sum() > 200_000


def test_ranks_share_the_rows_and_read_each_batch_once_a_turn(clicks, tmp_path):
    convert(small("clicks", clicks), tmp_path / "rows")
    rows = np.concatenate(numbers_in(tmp_path / "rows", ROW))
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


PAIRS = [("x" * (number * 7 % 41), f"ü{number}" * (number % 6)) for number in range(200)]
PLACES = 100


@pytest.fixture(scope="session")
def mine(tmp_path_factory) -> Path:
    """Pairs of the user's own: empty sentences, Windows' ends of lines, none behind the last."""
    sources, targets = zip(*PAIRS, strict=True)
    written = {"source.txt": "\n".join(sources), "target.txt": "\r\n".join([*targets, ""])}
    return write(tmp_path_factory.mktemp("own") / "own", written)


def pairs_in(batch) -> list[tuple[str, str]]:
    """The pairs of a batch, after a check of its arrays."""
    source, real, target, following, weights = batch
    assert [one.dtype for one in batch] == [np.int64] * 4 + [np.float32]
    assert {one.shape for one in batch} == {source.shape}
    found = []
    for row, (read, wanted) in enumerate(zip(real, weights, strict=True)):
        sides = []
        for ids, marks in ((source, read), (following, wanted)):
            count = int(marks.sum())
            assert marks.tolist() == [1] * count + [0] * (len(marks) - count)
            assert ids[row, count - 1] == 256
            assert not ids[row, count:].any()
            sides.append(bytes(ids[row, : count - 1].tolist()).decode())
        before = [256, *following[row, : count - 1], 0][: source.shape[1]]
        assert target[row].tolist()[: count + 1] == before
        found.append(tuple(sides))
    return found


def test_ranks_share_the_pairs_evenly_and_leave_none_out(mine, tmp_path):
    """Padding is no token, and a pair comes again only when all of its length have come."""
    manifest = convert(small("pairs", mine, longest=41), tmp_path)
    assert [part.pairs for part in manifest.parts] == [50] * 4
    tokens = [sum(len(one.encode()) + 1 for one in side) for side in zip(*PAIRS, strict=True)]
    assert [manifest.pairs, manifest.source_tokens, manifest.target_tokens] == [200, *tokens]
    assert manifest.bytes == 2 * sum(tokens)
    for rank in (0, 1):
        read = batches("pairs", tmp_path, 300, PLACES, rank=rank, ranks=2)
        seen: Counter[tuple[str, str]] = Counter()
        for batch in read:
            found = pairs_in(batch)
            longest = max(len(one.encode()) + 1 for pair in found for one in pair)
            length = batch[0].shape[1]
            assert length == min(41, -(-longest // 8) * 8)
            assert len(found) == PLACES // length
            tokens = sum(len(target.encode()) + 1 for _, target in found)
            assert transformer.counts(batch)["tokens"] == tokens
            seen.update(found)
        assert seen.keys() == {*PAIRS[100 * rank : 100 * rank + 100]}
        again = batches("pairs", tmp_path, 300, PLACES, rank=rank, ranks=2)
        assert all(map(np.array_equal, map(np.stack, read), map(np.stack, again)))
    convert(small("pairs", mine, longest=41, seed=4), tmp_path)
    (other,) = batches("pairs", tmp_path, 1, PLACES, rank=rank, ranks=2)
    assert pairs_in(other) != pairs_in(read[0])


def test_the_embedded_pairs_are_numbers_and_sums_in_two_languages(embedded):
    folder, _ = embedded("pairs")
    digests = [sha256(folder / name)[:16] for name in ("source.txt", "target.txt")]
    assert digests == ["800b5d5294bc7b99", "c560baef85e59ab8"]
    assert (english(101), german(101)) == ("one hundred and one", "einhunderteins")
    assert (english(7016), german(7016)) == ("seven thousand and sixteen", "siebentausendsechzehn")
    english_lines, german_lines = (
        (folder / name).read_text().splitlines() for name in ("source.txt", "target.txt")
    )
    assert len(english_lines) == 20_000
    at = english_lines.index("Twenty-one and one make twenty-two.")
    assert german_lines[at] == "Einundzwanzig und eins sind zweiundzwanzig."
    assert max(len(one.encode()) for one in english_lines + german_lines) == 70


LETTERS = "".join(f"Grüße, {number} 🦜 times.\n" for number in range(400))
DOCUMENTS = [LETTERS[:3000] + "\n", "One line.\n", LETTERS[3000:]]


@pytest.fixture(scope="session")
def text(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("text") / "text.txt", f"{END}\n".join(DOCUMENTS))


@pytest.mark.parametrize("piece", [700, 1 << 20])
def test_bytes_and_ends_of_documents_are_the_stream_however_it_is_cut(
    text, tmp_path, monkeypatch, piece
):
    monkeypatch.setattr(text_files, "PIECE", piece)
    manifest = convert(small("tokens", text), tmp_path)
    wanted = [one for document in DOCUMENTS for one in [*document.encode(), 256]]
    parts = numbers_in(tmp_path)
    assert np.concatenate(parts).tolist() == wanted
    assert [len(ids) for ids in parts] == [part.tokens for part in manifest.parts]
    assert max(map(len, parts)) - min(map(len, parts)) < 100
    assert (manifest.documents, manifest.tokens) == (3, len(wanted))
    assert (manifest.type, manifest.vocabulary, manifest.end) == ("uint16", 257, 256)
    for number, ids in enumerate(parts):
        lines = np.loadtxt(tmp_path / f"part-{number:05d}.idx", int, ndmin=2)
        assert np.array_equal(lines[:, 0], np.cumsum(lines[:, 1]) - lines[:, 1])
        assert lines[:, 1].sum() == ids.nbytes


def test_a_folder_is_all_its_files_in_order_each_a_document(tmp_path):
    files = {"b/2": "zwei\n", "a": "\ufeffeins\n", ".hidden": "null", "c": ""}
    convert(small("tokens", write(tmp_path / "own", files), parts=1), tmp_path)
    assert numbers_in(tmp_path)[0].tolist() == [*b"eins\n", 256, *b"zwei\n", 256]


def test_byte_pairs_are_those_of_the_library_that_has_gpt2s_own(text, tmp_path):
    bpe = write(tmp_path / "bpe", byte_pairs("Ġ t", "i m", "Ġt im", "Ã ¼"))
    manifest = convert(small("tokens", text, bpe=bpe, parts=1), tmp_path / "ids")
    of_others = tokenizers.ByteLevelBPETokenizer(str(bpe / "vocab.json"), str(bpe / "merges.txt"))
    wanted = [one for text in DOCUMENTS for one in [*of_others.encode(text).ids, 256]]
    assert numbers_in(tmp_path / "ids")[0].tolist() == wanted
    assert {257, 258, 259, 260} & {*wanted} == {259, 260}
    assert (manifest.vocabulary, manifest.end) == (261, 256)


@pytest.mark.parametrize(
    ("kind", "key", "file"),
    [
        ("tokens", "bpe", "bpe/merges.txt"),
        ("pairs", "joint_bpe", "bpe/merges.txt"),
        ("text", "vocabulary", "bpe"),
    ],
)
def test_a_set_of_another_vocabulary_is_another(kind, key, file, own, tmp_path):
    of_text = "[UNK]\n[MASK]\n[SEP]\n[CLS]\na\n"
    bpe = write(tmp_path / "bpe", of_text if kind == "text" else byte_pairs("Ã ¼"))
    data = small(kind, own(kind), **{key: bpe, "vocabulary_size": 5})
    manifest = convert(data, tmp_path / data.of_kind.formats[0])
    if kind == "pairs":  # both languages have it; of 0 to 19 times ü, which is one token now
        assert manifest.source_tokens == manifest.target_tokens == 200 + 10 * sum(range(20))

    def lies() -> bool:
        return data.of_kind.lies_at(tmp_path / data.of_kind.formats[0] / "manifest.json")

    assert lies()
    (tmp_path / file).write_text("#version: 0.2\n")
    assert not lies()
    (tmp_path / file).unlink()  # what is converted needs it no longer
    assert lies()


@pytest.mark.parametrize(("size", "kind"), [(1 << 16, "uint16"), ((1 << 16) + 1, "uint32")])
def test_ids_beyond_16_bits_have_32(text, tmp_path, size, kind):
    files = byte_pairs()
    ids = json.loads(files["vocab.json"]) | {"unused": 256, END: size - 1}
    ids |= {f"unused {number}": number for number in range(257, size - 1)}
    bpe = write(tmp_path / "bpe", files | {"vocab.json": json.dumps(ids)})
    assert convert(small("tokens", text, bpe=bpe), tmp_path / "ids").type == kind
    assert np.concatenate(numbers_in(tmp_path / "ids"))[-1] == size - 1
    ((_, following),) = batches("tokens", tmp_path / "ids", 1, 3, vocabulary=size)
    assert following.max() < size


def test_readers_share_all_tokens_and_read_them_again_in_another_order(text, tmp_path):
    def seen(count: int, rank: int) -> list[bytes]:
        """The first samples of a rank, with the token behind each."""
        found = []
        for tokens, following in batches("tokens", tmp_path, count, 2, rank=rank, ranks=2):
            assert tokens.dtype == following.dtype == np.int64
            assert np.array_equal(tokens[:, 1:], following[:, :-1])
            found += [row.tobytes() for row in np.hstack([tokens, following[:, -1:]])]
        return found

    convert(small("tokens", text), tmp_path)
    parts = numbers_in(tmp_path)
    for rank in (0, 1):
        held = {
            ids[first : first + 17].astype(np.int64).tobytes()
            for ids in parts[2 * rank : 2 * rank + 2]
            for first in range(0, len(ids) - 16, 16)
        }
        count = sum((len(ids) - 1) // 16 for ids in parts[2 * rank : 2 * rank + 2])
        read = seen(count, rank)
        first, second = read[:count], read[count:]
        assert set(first) == set(second) == held
        assert first != second
        assert sorted(first) == sorted(second)
        assert read[:6] == seen(3, rank)
    convert(small("tokens", text, seed=4), tmp_path)
    assert read[:6] != seen(3, rank)


LINES = "".join(
    f"The cat\u2019s {size} fish, THE fish; x{number}\n" for number, size in enumerate("ab" * 60)
)
NEAR = {
    (int(line[at]), int(line[at + step]))
    for line in ("123010", "124010")
    for at in range(6)
    for step in (-2, -1, 1, 2)
    if 0 <= at + step < 6
}
"""The pairs of two lines, up to a distance of 2."""


@pytest.mark.parametrize(("least", "known"), [(5, 5), (60, 5), (61, 3)])
def test_words_as_frequent_as_asked_become_their_places_in_the_vocabulary(
    tmp_path, monkeypatch, least, known
):
    monkeypatch.setattr(text_files, "PIECE", 300)
    data = small("words", write(tmp_path / "text.txt", LINES), least_count=least)
    manifest = convert(data, tmp_path)
    vocabulary = ["fish 240\n", "the 240\n", "cat\u2019s 120\n", "a 60\n", "b 60\n"][:known]
    assert (tmp_path / "vocab.txt").read_text() == "".join(vocabulary)
    words = [1, 2, 3, 0, 1, 0, 1, 2, 4, 0, 1, 0] * 60
    ids = np.concatenate(numbers_in(tmp_path, "<u4")).tolist()
    assert [one for one in ids if one < known] == [one for one in words if one < known]
    lines = Counter(filter(None, "".join(map(str, ids)).split(str(known))))
    assert lines == ({"123010": 60, "124010": 60} if known == 5 else {"12010": 120})
    count = 720 if known == 5 else 600
    assert (manifest.vocabulary, manifest.words_read, manifest.words_known) == (known, 840, count)
    assert manifest.words == count


def test_words_are_thinned_out_by_their_frequency(tmp_path):
    convert(small("words", write(tmp_path / "text.txt", LINES * 50), thinning=0.05), tmp_path)
    kept = Counter(np.concatenate(numbers_in(tmp_path, "<u4")).tolist())
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
    convert(small("words", write(tmp_path / "text.txt", LINES)), tmp_path / "words")
    for rank in (0, 1):
        columns, same = (
            [np.concatenate(one) for one in zip(*read, strict=True)]
            for read in (
                batches("words", tmp_path / "words", 200, 10, rank=rank, ranks=2) for _ in range(2)
            )
        )
        assert all(map(np.array_equal, columns, same))
        centres, contexts, negatives, firsts = columns
        assert {*zip(centres.tolist(), contexts.tolist(), strict=True)} == NEAR
        assert negatives.shape == (2000, 3)
        # Each of 360 words a pass has pairs: with a reach of 1 a line has 10, with 2 it has 18.
        assert firsts.sum() == pytest.approx(2000 * 6 / 14, rel=0.05)
    counts = np.bincount(negatives.ravel()) / negatives.size
    wanted = np.array([240, 240, 120, 60, 60]) ** 0.75
    assert counts == pytest.approx(wanted / wanted.sum(), abs=0.02)
