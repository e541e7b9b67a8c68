"""Pairs of sentences to parts of ids, and the batches that ranks read of them."""

import json
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from reperf.data.pairs import lines
from reperf.data.pairs.convert import convert
from reperf.data.pairs.embedded import make as make_pairs
from reperf.data.pairs.manifest import PairSettings
from reperf.data.tokens.vocabulary import END
from reperf.errors import ReperfError
from trainers.contract.steplog import Refused
from trainers.inputs.pairs import Pairs
from trainers.recipes import encoder_decoder

PAIRS = [("x" * (number * 7 % 40), f"ü{number}" * (number % 6)) for number in range(200)]
SHAPE = {"longest": 41, "vocabulary": 257}
PARTS, PLACES = 4, 100


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Pairs of the user's own: empty sentences, Windows' ends of lines, none behind the last."""
    folder = tmp_path / "own"
    folder.mkdir()
    sources, targets = zip(*PAIRS, strict=True)
    (folder / "source.txt").write_text("\n".join(sources))
    (folder / "target.txt").write_text("".join(f"{one}\r\n" for one in targets), newline="")
    return folder


def settings(folder: Path, **changes: object) -> PairSettings:
    usual = {"joint_bpe": None, "longest": 41, "parts": PARTS, "seed": 1}
    return PairSettings(pairs=str(folder), **usual | changes)


@pytest.fixture
def converted(own: Path, tmp_path: Path) -> Path:
    convert(settings(own), tmp_path / "ids", "ids", workers=1)
    return tmp_path / "ids"


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def batches(folder: Path, number: int, rank=0, ranks=1, places=PLACES, **shape: int) -> list:
    return list(islice(Pairs(folder, SHAPE | shape, places, rank, ranks), number))


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
        assert (
            target[row].tolist()[: count + 1]
            == [256, *following[row, : count - 1], 0][: source.shape[1]]
        )
        found.append(tuple(sides))
    return found


def test_the_bytes_do_not_depend_on_workers_nor_on_how_lines_are_read(
    own, converted, tmp_path, monkeypatch
):
    monkeypatch.setattr(lines, "PIECE", 7)
    manifest = convert(settings(own), tmp_path / "other", "ids", workers=3)
    assert content(tmp_path / "other") == content(converted)
    assert [part.pairs for part in manifest.parts] == [50] * PARTS
    tokens = [sum(len(one.encode()) + 1 for one in side) for side in zip(*PAIRS, strict=True)]
    assert [manifest.pairs, manifest.source_tokens, manifest.target_tokens] == [200, *tokens]
    assert manifest.bytes == 2 * sum(tokens)


def test_ranks_share_the_pairs_evenly_and_leave_none_out(converted):
    """Padding is no token, and a pair comes again only when all of its length have come."""
    for rank in (0, 1):
        read = batches(converted, 300, rank, 2)
        seen: Counter[tuple[str, str]] = Counter()
        for batch in read:
            pairs = pairs_in(batch)
            longest = max(len(one.encode()) + 1 for pair in pairs for one in pair)
            length = batch[0].shape[1]
            assert length == min(41, -(-longest // 8) * 8)
            assert len(pairs) == PLACES // length
            assert encoder_decoder.counts(batch)["tokens"] == sum(
                len(target.encode()) + 1 for _, target in pairs
            )
            seen.update(pairs)
        own = Counter(PAIRS[100 * rank : 100 * rank + 100])
        assert seen.keys() == own.keys()
        again = batches(converted, 300, rank, 2)
        assert all(map(np.array_equal, map(np.stack, read), map(np.stack, again)))


def test_the_seed_of_the_set_gives_the_order(own, converted, tmp_path):
    convert(settings(own, seed=2), tmp_path / "other", "ids", workers=1)
    first, other = (pairs_in(*batches(folder, 1)) for folder in (converted, tmp_path / "other"))
    assert first != other


def test_both_languages_have_the_byte_pairs_of_one_vocabulary(own, tmp_path):
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    ids = {token: number for number, token in enumerate([*alphabet, END, "xx"])}
    (tmp_path / "vocab.json").write_text(json.dumps(ids))
    (tmp_path / "merges.txt").write_text("x x\n")
    asked = settings(own, joint_bpe=str(tmp_path))
    manifest = convert(asked, tmp_path / "ids", "ids", workers=1)
    assert (manifest.vocabulary, manifest.end) == (258, 256)
    sources = [len(source) // 2 + len(source) % 2 + 1 for source, _ in PAIRS]
    assert manifest.source_tokens == sum(sources)
    assert manifest.is_of(asked)
    (tmp_path / "merges.txt").write_text("")
    assert not manifest.is_of(asked)


def test_the_embedded_pairs_are_numbers_and_sums_in_two_languages(tmp_path):
    make_pairs(tmp_path)
    english, german = (
        (tmp_path / name).read_text().splitlines() for name in ("source.txt", "target.txt")
    )
    pairs = dict(zip(english, german, strict=True))
    assert len(english) == 20_000
    assert pairs["One hundred and one."] == "Einhunderteins."
    assert pairs["Seven thousand and sixteen."] == "Siebentausendsechzehn."
    assert (
        pairs["Twenty-one and one make twenty-two."]
        == "Einundzwanzig und eins sind zweiundzwanzig."
    )
    assert max(len(one.encode()) for one in english + german) == 70


@pytest.mark.parametrize(
    ("source", "target", "fault"),
    [
        (
            b"a\nb\nc\nd\n",
            b"a\nb\n",
            "source.txt: line 3 belongs to no other: source.txt has 4 lines and target.txt 2; allo",
        ),
        (b"a\nb\n", b"a\nb\nc", "target.txt: line 3 belongs to no other: source.txt has 2 lines a"),
        (b"a\nb\n", b"", "target.txt: an empty file; allowed: a folder that holds source.txt and"),
        (b"a\n" * 3, b"a\n\xff\nb\n", r"target.txt: byte 2: got b'\\xff'; allowed: a folder that "),
        (b"a\n" * 3, b"a\nb\n" + b"c" * 41, "target.txt: line 3: has 42 tokens with its end; allo"),
        (b"a\n", None, "target.txt: no such file; allowed: a folder that holds source.txt and"),
        (b"a\n", b"b\n", "own: has 1 pairs; allowed: one or more for each of 2 parts"),
    ],
)
def test_pairs_that_cannot_be_converted_leave_nothing(tmp_path, source, target, fault):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "source.txt").write_bytes(source)
    if target is not None:
        (folder / "target.txt").write_bytes(target)
    with pytest.raises(ReperfError, match=fault) as refused:
        convert(settings(folder, parts=2), tmp_path / "ids", "ids", workers=1)
    assert "\n" not in str(refused.value)
    assert content(tmp_path / "ids") == {}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"places": 40}, "a batch of 40 places; allowed: 41 or more, a sentence's longest"),
        (
            {"longest": 24},
            "part-00000: has a sentence of .* tokens; allowed: up to 24, the shape's",
        ),
        ({"vocabulary": 200}, r"part-0000\d at byte \d+: got id 2\d\d; allowed: below 200, the vo"),
        ({"ranks": 3}, "4 parts for 3 ranks; allowed: a multiple of them"),
    ],
)
def test_what_a_reader_cannot_read_is_refused_in_one_line(converted, changes, fault):
    with pytest.raises(Refused, match=fault):
        batches(converted, 200, **changes)


def test_a_part_that_is_cut_and_an_index_of_others_are_refused(converted):
    part, index = converted / "part-00001", converted / "part-00002.idx"
    index.write_text("0 8\n8 8\n")
    with pytest.raises(Refused, match=r"part-00002.idx: 4 numbers; allowed: lines of offset and t"):
        batches(converted, 1)
    index.unlink()
    with pytest.raises(Refused, match=r"part-00002.idx: cannot be read: No such file"):
        batches(converted, 1)
    part.write_bytes(part.read_bytes()[:-2])
    with pytest.raises(Refused, match=r"part-00001: ends before its index; allowed: a whole part"):
        batches(converted, 1)
