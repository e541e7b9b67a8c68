"""What every kind of data can do, and the two steps that serve them all."""

import json
from hashlib import sha256
from pathlib import Path

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

from tests.unit.data.record_readers import crc32c
from tests.unit.data.sets import content, convert, small

kinds = pytest.mark.parametrize("kind", KINDS)
formats = pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in KINDS for name in KINDS[kind].formats]
)


@pytest.fixture
def data(kind, own) -> Data:
    return small(kind, own(kind))


@pytest.fixture
def manifest(copied) -> Path:
    """That of a copy of the same set, converted."""
    return copied / "manifest.json"


@pytest.fixture
def small_pieces(monkeypatch):
    """Several pieces in each part."""
    monkeypatch.setattr(text_files, "PIECE", 100)
    monkeypatch.setattr(pair_conversion, "PIECE", 7)
    monkeypatch.setattr(corpus, "CHUNK", 100)


@kinds
def test_one_step_makes_and_one_converts_the_embedded_sets(kind, embedded):
    source, records = embedded(kind)
    assert source.exists()
    assert (records.parent / KINDS[kind].last).is_file()
    assert small(kind).of_kind.lies_at(records / "manifest.json")


@formats
def test_neither_workers_nor_an_earlier_conversion_change_the_bytes(
    data, name, tmp_path, small_pieces
):
    data = data.model_copy(update={"passes": 2})  # over a text
    convert(data, tmp_path / "one", name)
    convert(data.model_copy(update={"parts": 6}), tmp_path / "again", name, workers=2)
    convert(data, tmp_path / "again", name, workers=3)
    assert content(tmp_path / "again") == content(tmp_path / "one")


@formats
def test_the_manifest_says_what_lies_there(data, name, tmp_path):
    manifest = convert(data, tmp_path / name, name)
    suffix = ".rec" if name == "recordio" else ""
    assert [one.name for one in manifest.parts] == [f"part-0000{k}{suffix}" for k in range(4)]
    for part in manifest.parts:
        written = (tmp_path / name / part.name).read_bytes()
        assert (part.bytes, part.crc32c) == (len(written), f"{crc32c(written):08x}")
    counted = KINDS[data.kind].counted
    samples = sum(getattr(part, counted) for part in manifest.parts)
    assert getattr(manifest, counted) == samples
    assert manifest.bytes == sum(part.bytes for part in manifest.parts)
    held = {"counted": counted, "samples": samples, "bytes": manifest.bytes}
    digest = sha256((tmp_path / name / "manifest.json").read_bytes()).hexdigest()
    assert read_of_set(str(tmp_path / name), name) == (digest, {"name": tmp_path.name, **held})
    replaced = tmp_path / name / manifest.parts[2].name
    replaced.write_bytes(bytes(manifest.parts[2].bytes))
    with pytest.raises(ReperfError, match=f"{replaced}: its content is not what manifest.json"):
        read_of_set(str(tmp_path / name), name)


@pytest.mark.parametrize(
    ("kind", "digest"),
    [
        ("clicks", "a45c48bf80543018"),
        ("pairs", "636c12e63e7892f1"),
        ("tokens", "f2abf174e4c30228"),
        ("words", "3315ea96a279439a"),
    ],
)
def test_the_bytes_of_parts_stay_what_they_were(kind, digest, converted):
    """Of kinds whose bytes no library decides."""
    files = content(converted(kind))
    del files["manifest.json"]  # which names where the input lies
    assert sha256(b"".join(files[name] for name in sorted(files))).hexdigest()[:16] == digest


@kinds
def test_a_plan_gives_the_same_set_back(data):
    for one in (data, small(data.kind)):
        assert SetPlan.model_validate_json(SetPlan(data=one).text).data == one


# By reperf 1.0: what was converted and trained then is not done again.
TEXT = {"vocabulary": "v.txt", "passes": 3, "sequence_length": 64, "max_predictions": 9}


@pytest.mark.parametrize(
    ("asked", "digest"),
    [
        ({}, "42e9fec5659d41fc999dc852c02fd48029969dc4f8af2c0481f788c2460c6feb"),
        (
            {"name": "i", "images": "/x", "parts": 256, "seed": 3},
            "6a9ac16b3f78333d366419b400d74f068704187412379156188c0540fed57d6f",
        ),
        (
            {"name": "embedded-text", "kind": "text"},
            "ba5306b8f1040f00da23a28e8c8d7096c3502b2cbe67e90996908cc81f19e2a1",
        ),
        (
            {"name": "w", "kind": "text", "text": "/t", **TEXT},
            "7b34cc262364a480586e197c0e76c6dce90464ffb2b70e40ce50d1a346c938e9",
        ),
    ],
)
def test_a_new_kind_changes_no_plan_of_others(asked, digest):
    data = Data(**asked)
    suite = {
        "name": "small",
        "workload": {"images": "resnet50", "text": "bert-base"}[data.kind],
        "shape": data.of_kind.decided_shape(),
        "precision": "fp32",
        "batch_size": 1,
        "systems": ["pytorch"],
    }
    runs = Plans(load_report({"device": "cpu", "data": asked, "suites": [suite]})).runs
    assert {plan.data for plan in runs.values()} == {digest}


@kinds
def test_a_converted_set_is_known_again_and_one_of_other_settings_is_another(data, manifest):
    def is_of(**changes):
        return data.model_copy(update=changes).of_kind.lies_at(manifest)

    assert is_of()
    assert is_of(workers=7)
    assert not is_of(seed=4)
    assert not is_of(parts=1)
    assert not is_of(**{data.kind: "elsewhere"})


@kinds
def test_what_is_no_whole_manifest_of_this_kind_and_format_is_no_set(data, manifest):
    whole = json.loads(manifest.read_text())
    for other in KINDS.keys() - {data.kind}:
        assert not small(other).of_kind.lies_at(manifest)
    contents = [b"", b"{", b"[]", b"{}", b"\xff\xfe", b"null", b"[" * 100_000]
    for name in ("\0", f"../{manifest.parent.name}", "x" * 999):
        whole["parts"][0]["name"] = name
        contents.append(json.dumps(whole).encode())
    good = manifest.read_bytes()
    for one in contents:
        manifest.write_bytes(one)
        assert not data.of_kind.lies_at(manifest), one[:99]
    manifest.unlink()
    assert not data.of_kind.lies_at(manifest)
    manifest.mkdir()
    assert not data.of_kind.lies_at(manifest)
    manifest.rmdir()
    manifest.write_bytes(good)
    assert data.of_kind.lies_at(manifest)
    moved = manifest.parent.rename(manifest.parent.with_name("another"))
    assert not data.of_kind.lies_at(moved / "manifest.json")


@kinds
def test_a_set_whose_part_is_cut_or_gone_is_not_whole(data, manifest):
    part = manifest.with_name("part-00001")
    part.write_bytes(part.read_bytes()[:-1])
    assert not data.of_kind.lies_at(manifest)
    part.unlink()
    assert not data.of_kind.lies_at(manifest)


@kinds
def test_the_users_input_is_refused_in_one_line_where_it_is_missing(data, manifest, tmp_path):
    data.of_kind.check()
    Data(kind=data.kind).of_kind.check()
    gone = data.model_copy(update={data.kind: tmp_path / "gone"})
    with pytest.raises(ReperfError, match=r"^.*/gone(/source.txt)?: no such f.*; allowed: .*$"):
        gone.of_kind.check()
    before = content(manifest.parent)
    with pytest.raises(ReperfError, match=r"^.*/gone[^\n]*$"):
        convert(gone, manifest.parent)
    assert content(manifest.parent) == before  # what was converted from it earlier


@kinds
@pytest.mark.long
def test_the_size_of_the_records_is_estimated_near_what_it_is(kind, embedded):
    """Of the embedded set on the safe side, of a user's from the size of the files."""
    source, records = embedded(kind)
    size = Manifest.read(records / "manifest.json").bytes
    assert size <= small(kind).of_kind.record_bytes() <= 7 * size
    assert 0.95 * size <= small(kind, source).of_kind.record_bytes() <= 1.7 * size


def test_each_pass_over_a_text_has_records_of_its_own(own):
    once, thrice = (small("text", own("text"), passes=passes) for passes in (1, 3))
    assert thrice.of_kind.record_bytes() == 3 * once.of_kind.record_bytes()
