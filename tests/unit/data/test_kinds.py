"""What every kind of data can do, and the two steps that serve them all."""

import json
from pathlib import Path

import pytest
from reperf.config import Data, load_report
from reperf.data.kinds import KINDS
from reperf.data.pairs.embedded import make as make_pairs
from reperf.errors import ReperfError
from reperf.plans.planning import Plans
from reperf.plans.set_plan import SetPlan
from reperf.steps import convert as convert_step
from reperf.steps import make_set as make_set_step

from tests.unit.data.pictures import make_set

TEXT = "".join(f"A cat sat here.\nThen came dog {number}.\n\n" for number in range(20))
CLICKS = "".join(
    "\t".join([str(line % 2), *12 * ["7"], "-1", *26 * ["0123abcd"]]) + "\n" for line in range(50)
)
SMALL = {"parts": 2, "seed": 3}
SMALL_OF = {"text": {"vocabulary_size": 500}, "words": {"thinning": 1.0}}

MAKE = {"images": lambda folder: make_set(folder, n01=3, n02=2), "pairs": make_pairs}

kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def data(kind, tmp_path) -> Data:
    """A small set of the user's own."""
    own = tmp_path / "own"
    MAKE.get(kind, lambda path: path.write_text({"clicks": CLICKS}.get(kind, TEXT)))(own)
    return small(kind, **{kind: own})


def small(kind: str, **own: Path) -> Data:
    return Data(name="small", kind=kind, **own, **SMALL, **SMALL_OF.get(kind, {}))


@pytest.fixture
def manifest(data, tmp_path) -> Path:
    """The set's manifest, converted."""
    name = KINDS[data.kind].formats[0]
    KINDS[data.kind].convert(data, tmp_path / name, name, 1)
    return tmp_path / name / "manifest.json"


@kinds
def test_one_step_makes_and_one_converts_the_embedded_sets(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # an embedded set is known by its path from the work folder
    data, name = small(kind), KINDS[kind].formats[0]
    Path("data/small").mkdir(parents=True)
    Path("data/small/plan.json").write_text(SetPlan(data=data).text)
    make_set_step.run("small")
    assert Path("data/small", KINDS[kind].last).is_file()
    assert data.source.exists()
    convert_step.run("small", name)
    assert KINDS[kind].is_of(data, Path("data/small", name, "manifest.json"))


@kinds
def test_a_plan_gives_the_same_set_back(data):
    for one in (data, small(data.kind)):
        assert SetPlan.model_validate_json(SetPlan(data=one).text).data == one


# By reperf 0.3, which knew no third kind: what was converted and trained then is not done again.
@pytest.mark.parametrize(
    ("asked", "digest"),
    [
        ({}, "89ad716d33b1f6de2de49e5d8974f214bcbfe498b932ccef3d01205accaa45c3"),
        (
            {"name": "i", "images": "/x", "parts": 256, "seed": 3},
            "414c948c9607fa531e0308cd5ca0889e445061c4b50c9346471a0d22e9e6d0ac",
        ),
        (
            {"name": "embedded-text", "kind": "text"},
            "aa2426f2b1dffbf1c8bcbae40fb9357d6d743f6794a3bb419cc2f34207b4dcca",
        ),
        (
            {
                "name": "w",
                "kind": "text",
                "text": "/t",
                "vocabulary": "v.txt",
                "passes": 3,
                "sequence_length": 64,
                "max_predictions": 9,
            },
            "36bee6dcb0da4dd10a30b8a83dbc723972dd648be51c6027252bbdeb56fae92c",
        ),
    ],
)
def test_a_new_kind_changes_no_plan_of_the_first_two(asked, digest):
    data = Data(**asked)
    suite = {
        "name": "small",
        "workload": {"images": "resnet50", "text": "bert-base"}[data.kind],
        "shape": data.shape,
        "precision": "fp32",
        "batch_size": 1,
        "systems": ["pytorch"],
    }
    runs = Plans(load_report({"device": "cpu", "data": asked, "suites": [suite]})).runs
    assert {plan.data for plan in runs.values()} == {digest}


@kinds
def test_a_converted_set_is_known_again(data, manifest):
    assert KINDS[data.kind].is_of(data, manifest)
    assert KINDS[data.kind].is_of(data.model_copy(update={"workers": 7}), manifest)


@kinds
def test_a_set_of_other_settings_is_another(data, manifest):
    for change in ({"seed": 4}, {"parts": 1}, {data.kind: "elsewhere"}):
        assert not KINDS[data.kind].is_of(data.model_copy(update=change), manifest), change


@kinds
def test_what_is_no_manifest_is_no_set(data, manifest):
    assert KINDS[data.kind].is_of(data, manifest)
    for content in (b"", b"{", b"[]", b"{}", b"\xff\xfe", b"null", b"[" * 100_000):
        manifest.write_bytes(content)
        assert not KINDS[data.kind].is_of(data, manifest), content[:9]


@kinds
def test_a_manifest_that_is_missing_or_a_folder_or_names_no_files_is_no_set(data, manifest):
    whole = json.loads(manifest.read_text())
    for name in ("\0", f"../{manifest.parent.name}", "x" * 999):
        whole["parts"][0]["name"] = name
        manifest.write_text(json.dumps(whole))
        assert not KINDS[data.kind].is_of(data, manifest)
    manifest.unlink()
    assert not KINDS[data.kind].is_of(data, manifest)
    manifest.mkdir()
    assert not KINDS[data.kind].is_of(data, manifest)


@kinds
def test_the_manifest_of_another_kind_or_format_is_of_no_set(data, manifest):
    for other in KINDS.keys() - {data.kind}:
        assert not KINDS[other].is_of(small(other), manifest)
    moved = manifest.parent.rename(manifest.parent.with_name("another"))
    assert not KINDS[data.kind].is_of(data, moved / "manifest.json")


@kinds
def test_a_set_whose_part_is_cut_or_gone_is_not_whole(data, manifest):
    part = manifest.with_name("part-00001")
    part.write_bytes(part.read_bytes()[:-1])
    assert not KINDS[data.kind].is_of(data, manifest)
    part.unlink()
    assert not KINDS[data.kind].is_of(data, manifest)


@kinds
def test_the_users_input_is_refused_in_one_line_where_it_is_missing(data, tmp_path):
    KINDS[data.kind].check(data)
    KINDS[data.kind].check(Data(kind=data.kind))
    gone = data.model_copy(update={data.kind: tmp_path / "gone"})
    with pytest.raises(ReperfError, match=r"gone: no such f.*; allowed: "):
        KINDS[data.kind].check(gone)


def test_a_vocabulary_is_refused_before_any_job(tmp_path):
    short = tmp_path / "vocab.txt"
    short.write_text("[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
    with pytest.raises(ReperfError, match=r"vocab.txt: has 4 tokens; allowed: 16, vocabulary_size"):
        KINDS["text"].check(Data(kind="text", vocabulary=short, vocabulary_size=16))


@kinds
def test_the_size_of_the_records_is_estimated_from_the_users_files(data, tmp_path):
    own = tmp_path / "own"
    size = sum(path.stat().st_size for path in (own, *own.rglob("*")) if path.is_file())
    assert size <= KINDS[data.kind].record_bytes(data) <= 2 * size
