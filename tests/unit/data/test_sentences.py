"""The trainers' reader of sentences."""

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
from tests.unit.data import record_readers
from tests.unit.data.pictures import make_set
from tests.unit.data.sets import convert, small


@pytest.fixture(scope="module")
def converted(embedded) -> Path:
    """The embedded text in four parts."""
    return embedded("text")[1]


@pytest.fixture(scope="module")
def records(converted) -> list[dict[str, list]]:
    """What another reader finds there."""
    return record_readers.read_folder(converted, "tfrecord")


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


@pytest.mark.parametrize("size", [1, 32, 50, 700])
def test_batches_are_full_and_hold_all_records_in_order_again_and_again(converted, records, size):
    count = 2 * len(records) // size + 2
    check(islice(Sentences(converted, SHAPE, size, 0, 1), count), records, size)


def test_a_rank_reads_its_own_neighbouring_parts(converted, records):
    sizes = [len((converted / f"part-0000{k}.idx").read_text().splitlines()) for k in range(4)]
    middle = sizes[0] + sizes[1]
    for rank, share in enumerate((records[:middle], records[middle:])):
        count = len(share) // 32 + 2
        check(islice(Sentences(converted, SHAPE, 32, rank, 2), count), share, 32)


def test_without_an_index_the_records_are_found_by_their_lengths(converted, records, tmp_path):
    for path in converted.glob("part-?????"):
        shutil.copy(path, tmp_path)
    check(islice(Sentences(tmp_path, SHAPE, 32, 0, 1), 20), records, 32)


def as_record(lists: dict[str, list], order) -> bytes:
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
    orders = [chance.sample(NAMES, len(NAMES)) for _ in records]
    for part in range(2):
        content = map(as_record, records[part::2], orders[part::2])
        (tmp_path / f"part-0000{part}").write_bytes(b"".join(content))
    share = records[0::2] + records[1::2]
    check(islice(Sentences(tmp_path, SHAPE, 32, 0, 1), 20), share, 32)


def refusal(folder: Path, **changes: int) -> str:
    with pytest.raises(Refused) as caught:
        next(iter(Sentences(folder, SHAPE | changes, 400, 0, 1)))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ({"sequence_length": 32}, "0: input_ids has 64 numbers; allowed: 32"),
        ({"max_predictions": 20}, "0: masked_lm_positions has 10 numbers; allowed: 20"),
        ({"vocabulary": 1000}, r"\d+: \w+: got \d+; allowed: below 1000"),
    ],
)
def test_records_of_another_shape_are_refused(converted, shape, said):
    assert re.fullmatch(f"{converted}/part-00000 at byte {said}", refusal(converted, **shape))


def refused(content: bytes, tmp_path: Path, index: str | None = None) -> str:
    """Why a part of such content, and perhaps with an index, is refused."""
    part = tmp_path / "part-00000"
    part.write_bytes(content)
    if index is not None:
        Path(f"{part}.idx").write_text(index)
    return refusal(tmp_path).removeprefix(str(part))


def change(record: dict[str, list], **changes) -> bytes:
    order = [name for name in sorted(NAMES) if changes.get(name, 0) is not None]
    return as_record(record | changes, order)


ENDS = ": ends inside a record; allowed: a whole part of TFRecords"


def test_what_is_no_whole_part_is_refused(records, tmp_path):
    good = change(records[0])
    assert refusal(tmp_path) == f"{tmp_path}: 0 parts for 1 ranks; allowed: a multiple of them"
    assert refused(b"", tmp_path) == ": an empty part; allowed: TFRecords"
    for cut in (b"a text\n" * 100, good[:-1], good[:9]):
        assert refused(cut, tmp_path) == ENDS
    zeros = struct.pack("<Q", 100) + bytes(108)
    assert refused(zeros, tmp_path).startswith(" at byte 0: no input_ids; allowed: an Example with")
    for index, said in {
        "0 800000\n": ": ends before its index; allowed: a whole part",
        "0 100\n": " at byte 0: no record of 100 bytes; allowed: TFRecord",
        "0 100\n3\n": ".idx: 3 numbers; allowed: lines of offset and size",
    }.items():
        assert refused(good, tmp_path, index) == said


@pytest.mark.parametrize(
    ("key", "values", "said"),
    [
        ("segment_ids", None, " at byte 0: no segment_ids; allowed: an Example with input_ids"),
        ("segment_ids", [], " at byte 0: segment_ids has 0 numbers; allowed: 64"),
        ("input_ids", [5] * 63 + [-1 % 2**64], ": input_ids has numbers that"),
        ("segment_ids", [2] * 64, " at byte 0: segment_ids: got 2; allowed: below 2"),
        ("masked_lm_positions", [64] * 10, " at byte 0: masked_lm_positions: got 64; allowed: "),
        ("masked_lm_weights", [1.0] * 9, " at byte 0: masked_lm_weights has 9 numbers; allowed: "),
        ("next_sentence_labels", [1, 1], " at byte 0: next_sentence_labels has 2 numbers; all"),
    ],
)
def test_what_is_no_record_of_sentences_is_refused(records, tmp_path, key, values, said):
    assert refused(change(records[0], **{key: values}), tmp_path).startswith(said)


def test_records_of_images_are_refused(tmp_path):
    images = make_set(tmp_path / "images", n01=2)
    convert(small("images", images, parts=1), tmp_path / "out")
    said = refusal(tmp_path / "out")
    assert said.startswith(f"{tmp_path}/out/part-00000 at byte 0: no input_ids; allowed: an Exam")
