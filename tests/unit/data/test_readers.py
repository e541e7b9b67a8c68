"""Parts that ranks cannot read are refused; what they do read, each kind's own tests say."""

from pathlib import Path

import pytest
from trainers.contract.steplog import Refused

from tests.unit.data.sets import batches

SIZES = {"clicks": 2, "pairs": 41, "tokens": 3, "words": 10}


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
