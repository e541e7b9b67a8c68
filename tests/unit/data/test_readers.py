"""The trainers' reader of sentences, and what parts of any kind ranks cannot read."""

import re
import shutil
import struct
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest
from reperf.data.wire import field, varint
from trainers.contract.steplog import Refused
from trainers.inputs import sentences as module
from trainers.inputs.sentences import NAMES, Sentences

from tests.helpers.small_text import SHAPE
from tests.unit.data.record_readers import read_folder
from tests.unit.data.sets import batches

SIZES = {"clicks": 2, "pairs": 41, "tokens": 3, "words": 10}


@pytest.fixture(scope="module")
def text(embedded) -> Path:
    """The embedded text in four parts."""
    return embedded("text")[1]


@pytest.fixture(scope="module")
def records(text) -> list[dict[str, list]]:
    """What another reader finds there."""
    return read_folder(text, "tfrecord")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks that end inside parts."""
    monkeypatch.setattr(module, "BLOCK", 37)


def check(batches, expected: list[dict[str, list]], size: int) -> None:
    """Batches hold these records in this order, and then again."""
    at = 0
    for batch in batches:
        rows = [expected[(at + row) % len(expected)] for row in range(size)]
        at += size
        for name, array in zip(NAMES, batch, strict=True):
            wanted = np.array([row[name] for row in rows])
            wanted = wanted[:, 0] if name == "next_sentence_labels" else wanted
            assert array.dtype == (np.float32 if name == "masked_lm_weights" else np.int64)
            assert array.shape == wanted.shape
            assert (array == wanted).all(), name
            assert array.flags.c_contiguous
    assert at > len(expected)


@pytest.mark.parametrize("size", [1, 50, 700])
@pytest.mark.parametrize("has_index", [True, False])
def test_batches_are_full_and_hold_a_ranks_neighbouring_records_in_order_again_and_again(
    text, records, size, has_index, tmp_path
):
    """Without an index, they are found by their lengths."""
    first = len((text / "part-00000.idx").read_text().splitlines())
    first += len((text / "part-00001.idx").read_text().splitlines())
    if not has_index:
        ignore = shutil.ignore_patterns("*.idx")
        text = shutil.copytree(text, tmp_path / "text", ignore=ignore)
    for rank, share in enumerate((records[:first], records[first:])):
        count = 2 * len(share) // size + 2 if size > 1 else len(share) + 2
        check(islice(Sentences(text, SHAPE, size, rank, 2), count), share, size)


def as_record(lists: dict[str, list], order: list[str]) -> bytes:
    """A TFRecord with its keys in some order, as a hash map may have them."""
    entries = []
    for name in order:
        weights = name == "masked_lm_weights"
        packed = (
            struct.pack(f"<{len(lists[name])}f", *lists[name])
            if weights
            else b"".join(map(varint, lists[name]))
        )
        feature = field(2 if weights else 3, field(1, packed))
        entries.append(field(1, field(1, name.encode()) + field(2, feature)))
    message = field(1, b"".join(entries))
    return struct.pack("<Q", len(message)) + bytes(4) + message + bytes(4)


def test_records_of_others_may_have_their_keys_in_any_order(records, tmp_path):
    chance = Random(1)
    for part in range(2):
        mine = records[part:600:2]
        written = [as_record(one, chance.sample(NAMES, len(NAMES))) for one in mine]
        (tmp_path / f"part-0000{part}").write_bytes(b"".join(written))
    share = records[0:600:2] + records[1:600:2]
    check(islice(Sentences(tmp_path, SHAPE, 32, 0, 1), 20), share, 32)


def refusal(folder: Path, **changes: int) -> str:
    with pytest.raises(Refused) as caught:
        next(iter(Sentences(folder, SHAPE | changes, 400, 0, 1)))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ({"sequence_length": 32}, "part-00000 at byte 0: input_ids has 64 numbers; allowed: 32"),
        ({"max_predictions": 20}, "part-00000 at .* masked_lm_positions has 10 .*; allowed: 20"),
        ({"vocabulary": 1000}, r"part-00000 at byte \d+: \w+: got \d+; allowed: below 1000"),
    ],
)
def test_records_of_another_shape_are_refused(text, shape, said):
    assert re.fullmatch(f"{text}/{said}", refusal(text, **shape))


ZEROS = struct.pack("<Q", 100) + bytes(108)
ENDS = ": ends inside a record; allowed: a whole part of TFRecords"
NO_IDS = " at byte 0: no input_ids; allowed: an Example with"


@pytest.mark.parametrize(
    ("changes", "cut", "index", "said"),
    [
        ({}, slice(0), None, ": an empty part; allowed: TFRecords"),
        ({}, slice(-1), None, ENDS),
        ({}, slice(9), None, ENDS),
        (b"a text\n" * 100, slice(None), None, ENDS),
        (ZEROS, slice(None), None, NO_IDS),
        ({}, slice(None), "0 800000\n", ": ends before its index; allowed: a whole part"),
        ({}, slice(None), "0 100\n", " at byte 0: no record of 100 bytes; allowed: TFRecord"),
        ({}, slice(None), "0 100\n3\n", ".idx: 3 numbers; allowed: lines of offset and size"),
        *(
            ({key: values}, slice(None), None, said)
            for key, values, said in (
                ("segment_ids", None, " at byte 0: no segment_ids; allowed: an Example with inpu"),
                ("segment_ids", [], " at byte 0: segment_ids has 0 numbers; allowed: 64"),
                ("input_ids", [5] * 63 + [-1 % 2**64], ": input_ids has numbers that"),
                ("segment_ids", [2] * 64, " at byte 0: segment_ids: got 2; allowed: below 2"),
                ("masked_lm_positions", [64] * 10, " at byte 0: masked_lm_positions: got 64; all"),
                ("masked_lm_weights", [1.0] * 9, " at byte 0: masked_lm_weights has 9 numbers; a"),
                ("next_sentence_labels", [1, 1], " at byte 0: next_sentence_labels has 2 numbers"),
            )
        ),
        ("images", slice(None), None, NO_IDS),
    ],
)
def test_what_is_no_whole_part_or_no_record_of_sentences_is_refused(
    records, tmp_path, converted, *, changes, cut, index, said
):
    assert refusal(tmp_path) == f"{tmp_path}: 0 parts for 1 ranks; allowed: a multiple of them"
    if changes == "images":
        changes = (converted("images") / "part-00000").read_bytes()
    if isinstance(changes, dict):
        order = [name for name in sorted(NAMES) if changes.get(name, 0) is not None]
        changes = as_record(records[0] | changes, order)
    (tmp_path / "part-00000").write_bytes(changes[cut])
    if index is not None:
        (tmp_path / "part-00000.idx").write_text(index)
    assert refusal(tmp_path).startswith(f"{tmp_path}/part-00000{said}")


@pytest.fixture
def parts(copied, kind) -> Path:
    """Parts of a kind, which can be read."""
    assert len(batches(kind, copied, 200, SIZES[kind])) == 200
    return copied


@pytest.mark.parametrize(
    ("kind", "changes", "fault"),
    [
        *((kind, {"ranks": 3}, "4 parts for 3 ranks; allowed: a multiple of") for kind in SIZES),
        ("clicks", {"size": 11}, "rank 0 has parts of up to 10 rows; allowed: 11 or more, a"),
        ("pairs", {"size": 40}, "a batch of 40 places; allowed: 41 or more, a sentence's longest"),
        ("pairs", {"longest": 38}, "part-00000: has a sentence of 39 tokens; allowed: up to 38, t"),
        ("pairs", {"vocabulary": 195}, r"part-0000. at byte \d+: got id 2..; allowed: below 195"),
        ("tokens", {"vocabulary": 195}, r"part-0000. at byte \d+: got id 195; allowed: below 195"),
        ("tokens", {"context": 9999}, "rank 0 has parts of up to .* tokens; allowed: 10000 or"),
        ("words", {"vocabulary": 5}, "has 6 words; allowed: up to 5, the vocabulary"),
    ],
)
def test_what_goes_beyond_a_shape_or_a_batch_is_refused(kind, changes, fault, parts):
    with pytest.raises(Refused, match=fault) as refused:
        batches(kind, parts, 200, **{"size": SIZES[kind]} | changes)
    assert "\n" not in str(refused.value)


OF_REPERF = "allowed: a folder that reperf has converted"


@pytest.mark.parametrize(
    ("kind", "name", "written", "fault"),
    [
        ("clicks", "part-00001", bytes(161), "has 161 bytes; allowed: whole rows of 160"),
        ("tokens", "part-00001", b"abc", "has 3 bytes; allowed: whole ids of 2"),
        ("words", "part-00000", bytes(7), "has 7 bytes; allowed: whole ids of 4"),
        ("words", "part-00000", b"\xff" * 8, " at byte 0: got id 4294967295; allowed: up to 6"),
        ("words", "vocab.txt", b"one\n", "is no vocabulary of 6 words and their counts"),
        ("pairs", "part-00001", b"ab", "ends before its index; allowed: a whole part"),
        ("pairs", "part-00002.idx", b"0 8\n8 8\n", "4 numbers; allowed: lines of offset and two "),
        ("pairs", "part-00002.idx", None, "cannot be read: No such file"),
        ("clicks", "manifest.json", b"[]", f"is no manifest of clicks; {OF_REPERF}"),
        ("pairs", "manifest.json", b"{}", f"is no manifest of tokens; {OF_REPERF}"),
        ("tokens", "manifest.json", b'{"type": "float16"}', "is no manifest of tokens; allowed: "),
        ("words", "manifest.json", b"[]", f"is no manifest of words; {OF_REPERF}"),
    ],
)
def test_parts_that_are_cut_or_of_others_are_refused(kind, name, written, fault, parts):
    if written is None:
        (parts / name).unlink()
    else:
        (parts / name).write_bytes(written)
    with pytest.raises(Refused, match=f"^{parts / name}:? ?{fault}"):
        batches(kind, parts, 1, SIZES[kind])
