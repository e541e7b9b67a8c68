"""What every kind of data can do, and the two steps that serve them all."""

import json
from hashlib import sha256

import pytest
from reperf.config import Data, load_report
from reperf.data import text_files
from reperf.data.kind import Manifest
from reperf.data.kinds import KINDS
from reperf.data.pairs import convert as pair_conversion
from reperf.data.set_read import read_of_set
from reperf.data.text import corpus
from reperf.errors import ReperfError
from reperf.plans.plan_files import SetPlan
from reperf.plans.planning import Plans

from tests.helpers.written_files import write
from tests.unit.data.record_readers import crc32c
from tests.unit.data.sets import content, convert, small

kinds = pytest.mark.parametrize("kind", KINDS)
formats = pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in KINDS for name in KINDS[kind].formats]
)


@formats
def test_neither_workers_nor_an_earlier_conversion_change_the_bytes(
    data, name, converted, tmp_path, monkeypatch
):
    """Nor the size of pieces, where no index and no end of a line depends on it."""
    once = content(converted(data.kind, name))
    monkeypatch.setattr(pair_conversion, "PIECE", 7)
    if data.kind == "clicks":
        monkeypatch.setattr(text_files, "PIECE", 100)
    stale = ("part-00007", "part-00007.rec", "part-00002.lst", "all.idx", "vocab.txt")
    write(tmp_path / name, dict.fromkeys((*stale, "manifest.json", ".part-00001.1.partial"), "x"))
    convert(data, tmp_path / name, name, workers=3)
    assert content(tmp_path / name) == once


@formats
def test_the_manifest_says_what_lies_there(kind, name, converted, tmp_path):
    folder = write(tmp_path / name, content(converted(kind, name)))
    manifest = Manifest.read(folder / "manifest.json")
    suffix = ".rec" if name == "recordio" else ""
    assert [one.name for one in manifest.parts] == [f"part-0000{k}{suffix}" for k in range(4)]
    for part in manifest.parts:
        written = (folder / part.name).read_bytes()
        assert (part.bytes, part.crc32c) == (len(written), f"{crc32c(written):08x}")
    counted = KINDS[kind].counted
    samples = sum(getattr(part, counted) for part in manifest.parts)
    assert getattr(manifest, counted) == samples
    assert manifest.bytes == sum(part.bytes for part in manifest.parts)
    held = {"counted": counted, "samples": samples, "bytes": manifest.bytes}
    digest = sha256((folder / "manifest.json").read_bytes()).hexdigest()
    assert read_of_set(str(folder), name) == (digest, {"name": tmp_path.name, **held})
    replaced = folder / manifest.parts[2].name
    replaced.write_bytes(bytes(manifest.parts[2].bytes))
    with pytest.raises(ReperfError, match=f"{replaced}: its content is not what manifest.json"):
        read_of_set(str(folder), name)


DIGESTS = {
    ("clicks", "rows"): "a45c48bf80543018",
    ("images", "tfrecord"): "bc34bcc88bfd09b8",
    ("images", "ofrecord"): "fb2b86b7dfcf812a",
    ("images", "recordio"): "735343363a5ea7bd",
    ("pairs", "ids"): "636c12e63e7892f1",
    ("text", "tfrecord"): "3a518d074aba31a5",
    ("text", "ofrecord"): "3afdbe71981deefe",
    ("tokens", "ids"): "f2abf174e4c30228",
    ("words", "words"): "3315ea96a279439a",
}
LETTERS = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz0123456789."]


@pytest.mark.parametrize(("kind", "name"), DIGESTS)
def test_the_bytes_of_parts_stay_what_they_were(data, name, converted, tmp_path, monkeypatch):
    """No library decides them: a vocabulary is given, and there are several chunks of text."""
    folder = converted(data.kind, name)
    if data.kind == "text":
        tokens = LETTERS + [f"##{letter}" for letter in LETTERS[4:]]
        keys = {"vocabulary": write(tmp_path / "v.txt", "\n".join(tokens)), "vocabulary_size": 78}
        monkeypatch.setattr(corpus, "CHUNK", 100)
        folder = tmp_path / name
        convert(data.model_copy(update=keys), folder, name)
    files = content(folder)
    del files["manifest.json"]  # which names where the input lies
    digest = sha256(b"".join(files[one] for one in sorted(files))).hexdigest()
    assert digest[:16] == DIGESTS[data.kind, name]


@kinds
def test_a_plan_gives_the_same_set_back(data):
    for one in (data, small(data.kind)):
        assert SetPlan.model_validate_json(SetPlan(data=one).text).data == one


# By reperf 1.0: what was converted and trained then is not done again.
TEXT = {"vocabulary": "v.txt", "passes": 3, "sequence_length": 64, "max_predictions": 9}


@pytest.mark.parametrize(
    ("asked", "digest"),
    [
        ({}, "42e9fec5659d41fc"),
        ({"name": "i", "images": "/x", "parts": 256, "seed": 3}, "6a9ac16b3f78333d"),
        ({"name": "embedded-text", "kind": "text"}, "ba5306b8f1040f00"),
        ({"name": "w", "kind": "text", "text": "/t", **TEXT}, "7b34cc262364a480"),
    ],
)
def test_a_new_kind_changes_no_plan_of_others(asked, digest):
    data = Data(**asked)
    workload = {"images": "resnet50", "text": "bert-base"}[data.kind]
    suite = {"name": "small", "workload": workload, "shape": data.of_kind.decided_shape()}
    suite |= {"precision": "fp32", "batch_size": 1, "systems": ["pytorch"]}
    runs = Plans(load_report({"device": "cpu", "data": asked, "suites": [suite]})).runs
    assert {plan.data[:16] for plan in runs.values()} == {digest}


@kinds
def test_a_converted_set_is_known_again_and_one_of_other_settings_is_another(data, copied):
    def lies(**changes):
        return data.model_copy(update=changes).of_kind.lies_at(copied / "manifest.json")

    assert lies()
    assert lies(workers=7)
    for other in ({"seed": 4}, {"parts": 1}, {data.kind: "elsewhere"}):
        assert not lies(**other)
    assert not any(
        small(kind).of_kind.lies_at(copied / "manifest.json") for kind in KINDS.keys() - {data.kind}
    )
    moved = copied.rename(copied.with_name("another"))
    assert not data.of_kind.lies_at(moved / "manifest.json")


@pytest.mark.parametrize("kind", ["tokens"])
def test_what_is_no_whole_manifest_or_lacks_a_byte_is_no_set(data, copied):
    manifest, part = copied / "manifest.json", copied / "part-00001"
    good, whole = json.loads(manifest.read_text()), part.read_bytes()
    changes = [{manifest: text} for text in (b"", b"{", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000)]
    for name in ("\0", "../ids", "x" * 999):
        parts = [good["parts"][0] | {"name": name}, *good["parts"][1:]]
        changes.append({manifest: json.dumps(good | {"parts": parts}).encode()})
    for change in [*changes, {part: whole[:-1]}, {part: None}, {manifest: None}]:
        ((path, written),) = change.items()
        before = path.read_bytes()
        path.unlink() if written is None else path.write_bytes(written)
        assert not data.of_kind.lies_at(manifest), (path.name, written)
        path.write_bytes(before)
        assert data.of_kind.lies_at(manifest)
    manifest.unlink()
    manifest.mkdir()
    assert not data.of_kind.lies_at(manifest)


@kinds
@pytest.mark.long
def test_an_embedded_set_is_made_and_converted_and_its_size_estimated_near_what_it_is(
    kind, embedded
):
    """Of the embedded set on the safe side, of a user's from the size of the files."""
    source, records = embedded(kind)
    assert (records.parent / KINDS[kind].last).is_file()
    assert small(kind).of_kind.lies_at(records / "manifest.json")
    size = Manifest.read(records / "manifest.json").bytes
    assert size <= small(kind).of_kind.record_bytes() <= 7 * size
    assert 0.95 * size <= small(kind, source).of_kind.record_bytes() <= 1.7 * size


def test_each_pass_over_a_text_has_records_of_its_own(own):
    once, thrice = (small("text", own("text"), passes=passes) for passes in (1, 3))
    assert thrice.of_kind.record_bytes() == 3 * once.of_kind.record_bytes()
