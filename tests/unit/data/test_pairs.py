"""Pairs of sentences to parts of ids, and the batches that ranks read of them."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from reperf.data.text_files import END
from trainers.recipes import transformer

from tests.unit.data.sets import batches, convert, small, write

PAIRS = [("x" * (number * 7 % 41), f"ü{number}" * (number % 6)) for number in range(200)]
PLACES = 100


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Path:
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


def test_pairs_and_their_tokens_are_counted(own, tmp_path):
    manifest = convert(small("pairs", own, longest=41), tmp_path)
    assert [part.pairs for part in manifest.parts] == [50] * 4
    tokens = [sum(len(one.encode()) + 1 for one in side) for side in zip(*PAIRS, strict=True)]
    assert [manifest.pairs, manifest.source_tokens, manifest.target_tokens] == [200, *tokens]
    assert manifest.bytes == 2 * sum(tokens)


def test_ranks_share_the_pairs_evenly_and_leave_none_out(own, tmp_path):
    """Padding is no token, and a pair comes again only when all of its length have come."""
    convert(small("pairs", own, longest=41), tmp_path)
    for rank in (0, 1):
        read = batches("pairs", tmp_path, 300, PLACES, rank=rank, ranks=2)
        seen: Counter[tuple[str, str]] = Counter()
        for batch in read:
            pairs = pairs_in(batch)
            longest = max(len(one.encode()) + 1 for pair in pairs for one in pair)
            length = batch[0].shape[1]
            assert length == min(41, -(-longest // 8) * 8)
            assert len(pairs) == PLACES // length
            tokens = sum(len(target.encode()) + 1 for _, target in pairs)
            assert transformer.counts(batch)["tokens"] == tokens
            seen.update(pairs)
        assert seen.keys() == {*PAIRS[100 * rank : 100 * rank + 100]}
        again = batches("pairs", tmp_path, 300, PLACES, rank=rank, ranks=2)
        assert all(map(np.array_equal, map(np.stack, read), map(np.stack, again)))
    convert(small("pairs", own, longest=41, seed=4), tmp_path)
    assert pairs_in(batches("pairs", tmp_path, 1, PLACES, rank=rank, ranks=2)[0]) != pairs_in(
        read[0]
    )


def test_both_languages_have_the_byte_pairs_of_one_vocabulary(own, tmp_path):
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    ids = {token: number for number, token in enumerate([*alphabet, END, "xx"])}
    bpe = write(tmp_path / "bpe", {"vocab.json": json.dumps(ids), "merges.txt": "x x\n"})
    data = small("pairs", own, longest=41, joint_bpe=bpe)
    manifest = convert(data, tmp_path / "ids")
    assert (manifest.vocabulary, manifest.end) == (258, 256)
    sources = [len(source) // 2 + len(source) % 2 + 1 for source, _ in PAIRS]
    assert manifest.source_tokens == sum(sources)
    assert data.of_kind.lies_at(tmp_path / "ids/manifest.json")
    write(bpe / "merges.txt", "")
    assert not data.of_kind.lies_at(tmp_path / "ids/manifest.json")


def test_the_embedded_pairs_are_numbers_and_sums_in_two_languages(embedded):
    folder, _ = embedded("pairs")
    english, german = (
        (folder / name).read_text().splitlines() for name in ("source.txt", "target.txt")
    )
    pairs = dict(zip(english, german, strict=True))
    assert len(english) == 20_000
    assert pairs["One hundred and one."] == "Einhunderteins."
    assert pairs["Seven thousand and sixteen."] == "Siebentausendsechzehn."
    sums = "Einundzwanzig und eins sind zweiundzwanzig."
    assert pairs["Twenty-one and one make twenty-two."] == sums
    assert max(len(one.encode()) for one in english + german) == 70
