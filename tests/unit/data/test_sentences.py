"""The trainers' reader of sentences."""

import shutil
import struct
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest
from reperf.data.images.convert_images import convert as convert_images
from reperf.data.text.convert_text import convert
from trainers.contract.steplog import Refused
from trainers.inputs import sentences as module
from trainers.inputs.sentences import NAMES, Sentences

from tests.helpers.small_text import SHAPE, text_settings
from tests.unit.data import record_readers
from tests.unit.data.pictures import make_set


@pytest.fixture(scope="module")
def converted(embedded_text, tmp_path_factory) -> Path:
    """The embedded text in four parts."""
    folder = tmp_path_factory.mktemp("converted")
    convert(text_settings(embedded_text), folder, "tfrecord", workers=1)
    return folder


@pytest.fixture(scope="module")
def records(converted) -> list[dict[str, list]]:
    """What another reader finds there; only a few parts' checksums are compared."""
    return record_readers.read_lists(converted, "tfrecord")


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


def varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80]) + varint(number >> 7) if number > 0x7F else bytes([number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


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


def test_records_of_another_shape_are_refused(converted, records):
    begin = f"{converted}/part-00000 at byte 0"
    assert refusal(converted, sequence_length=32) == (
        f"{begin}: input_ids has 64 numbers; allowed: 32"
    )
    assert refusal(converted, max_predictions=20) == (
        f"{begin}: masked_lm_positions has 10 numbers; allowed: 20"
    )
    said = refusal(converted, vocabulary=1000)
    assert said.startswith(f"{converted}/part-00000 at byte ")
    assert said.endswith("; allowed: below 1000")


def change(record: dict[str, list], **changes) -> bytes:
    order = [name for name in sorted(NAMES) if changes.get(name, 0) is not None]
    return as_record(record | changes, order)


def test_what_is_no_record_of_sentences_is_refused(records, tmp_path):
    part = tmp_path / "part-00000"
    begin = f"{part} at byte 0: "
    good = records[0]
    for content, said in (
        (b"", f"{part}: an empty part; allowed: TFRecords"),
        (b"a text\n" * 100, f"{part}: ends inside a record; allowed: a whole part of TFRecords"),
        (change(good)[:-1], f"{part}: ends inside a record; allowed: a whole part of TFRecords"),
        (change(good)[:9], f"{part}: ends inside a record; allowed: a whole part of TFRecords"),
        (struct.pack("<Q", 100) + bytes(108), f"{begin}no input_ids; allowed: an Example with "),
        (change(good, segment_ids=None), f"{begin}no segment_ids; allowed: an Example with input"),
        (change(good, segment_ids=[]), f"{begin}segment_ids has 0 numbers; allowed: 64"),
        (change(good, input_ids=[5] * 63 + [-1 % 2**64]), f"{part}: input_ids has numbers that"),
        (change(good, segment_ids=[2] * 64), f"{begin}segment_ids: got 2; allowed: below 2"),
        (change(good, masked_lm_positions=[64] * 10), f"{begin}masked_lm_positions: got 64; allo"),
        (change(good, masked_lm_weights=[1.0] * 9), f"{begin}masked_lm_weights has 9 numbers; al"),
        (change(good, next_sentence_labels=[1, 1]), f"{begin}next_sentence_labels has 2 numbers"),
    ):
        part.write_bytes(content)
        assert refusal(tmp_path).startswith(said)
    part.write_bytes(change(good))
    Path(f"{part}.idx").write_text("0 800000\n")
    assert refusal(tmp_path) == f"{part}: ends before its index; allowed: a whole part"
    Path(f"{part}.idx").write_text("0 100\n")
    assert refusal(tmp_path) == f"{begin}no record of 100 bytes; allowed: TFRecord"
    Path(f"{part}.idx").write_text("0 100\n3\n")
    assert refusal(tmp_path) == f"{part}.idx: 3 numbers; allowed: lines of offset and size"
    part.unlink()
    assert refusal(tmp_path) == f"{tmp_path}: 0 parts for 1 ranks; allowed: a multiple of them"


def test_records_of_images_are_refused(tmp_path):
    images = make_set(tmp_path / "images", n01=2)
    convert_images(images, tmp_path / "out", "tfrecord", parts=1, workers=1, seed=1)
    said = refusal(tmp_path / "out")
    assert said.startswith(f"{tmp_path}/out/part-00000 at byte 0: no input_ids; allowed: an Exam")
