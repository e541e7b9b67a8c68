from itertools import pairwise
from random import Random
from statistics import mean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reperf.data.text import sequences as module
from reperf.data.text.sequences import Marks, Sequences, Tokens, make_sequences

from tests.unit.data import plain_bert

START, END, MASK, FIRST = 1, 2, 3, 4
"""The ids of marks in these tests, and the first of a token."""


def numbered(lengths: list[list[int]]) -> Tokens:
    """Documents of sentences of these lengths; every token has an id of its own."""
    ids = iter(range(FIRST, FIRST + sum(map(sum, lengths))))
    return Tokens.of([[[next(ids) for _ in range(size)] for size in one] for one in lengths])


def unmasked(made: Sequences, row: int) -> list[int]:
    """A sequence's tokens as they were, without padding."""
    tokens = made.input_ids[row].copy()
    real = made.masked_lm_weights[row] > 0
    tokens[made.masked_lm_positions[row][real]] = made.masked_lm_ids[row][real]
    return tokens[: made.input_mask[row].sum()].tolist()


def halves(made: Sequences, row: int) -> tuple[list[int], list[int]]:
    tokens = unmasked(made, row)
    middle = tokens.index(END)
    assert tokens[0] == START
    assert tokens[-1] == END
    return tokens[1:middle], tokens[middle + 1 : -1]


documents = st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=12), min_size=2, max_size=6)


@given(documents, st.integers(8, 70), st.integers(1, 20), st.integers(0, 9))
def test_a_sequence_is_a_pair_of_halves_around_marks(lengths, length, predictions, seed):
    tokens = numbered(lengths)
    size = FIRST + len(tokens.ids)
    predictions = min(predictions, length - 3)
    made = make_sequences(tokens, Marks(START, END, MASK, size), length, predictions, (seed, 0))
    ends = [tokens.edges[at] for at in tokens.documents[1:]]
    assert len(made.input_ids) >= len(lengths)
    assert made.input_ids.shape == (len(made.input_ids), length)
    assert made.masked_lm_ids.shape == (len(made.input_ids), predictions)
    for row in range(len(made.input_ids)):
        first, second = halves(made, row)
        for half in (first, second):
            assert half == list(range(half[0], half[0] + len(half)))  # a piece of the text
        first_of, second_of = (
            set(np.searchsorted(ends, np.array(half) - FIRST, "right")) for half in (first, second)
        )
        assert len(first_of) == len(second_of) == 1  # no half lies across the end of a document
        real = 3 + len(first) + len(second)
        assert real <= length
        assert made.input_mask[row].tolist() == [1] * real + [0] * (length - real)
        ones = len(second) + 1
        segments = [0] * (real - ones) + [1] * ones + [0] * (length - real)
        assert made.segment_ids[row].tolist() == segments
        following = second[0] > first[-1] and first_of == second_of
        (random_next,) = made.next_sentence_labels[row]
        assert random_next in (0, 1)
        assert following or random_next
        assert first_of != second_of or not random_next or len(lengths) < 3
        count = min(predictions, max(1, round(real * 0.15)))
        assert made.masked_lm_weights[row].tolist() == [1.0] * count + [0.0] * (predictions - count)
        positions = made.masked_lm_positions[row]
        assert positions[count:].tolist() == [0] * (predictions - count)
        assert all(one < other for one, other in pairwise(positions[:count].tolist()))
        answers = made.masked_lm_ids[row]
        assert min(answers[:count]) >= FIRST  # no mark is masked
        assert answers[count:].tolist() == [0] * (predictions - count)


@given(documents)
def test_where_nothing_is_cut_off_no_sentence_is_left_out(lengths):
    tokens, length = numbered(lengths), 2 * max(map(sum, lengths)) + 4
    made = make_sequences(tokens, Marks(START, END, MASK, 1000), length, 1, (1, 2))
    rows = range(len(made.input_ids))
    used = {token for row in rows for half in halves(made, row) for token in half}
    assert used == set(tokens.ids.tolist())


@settings(max_examples=20)
@given(documents, st.integers(0, 5))
def test_the_same_seed_gives_the_same_sequences_and_another_one_others(lengths, seed):
    tokens = numbered([*lengths, [9] * 30])
    marks = Marks(START, END, MASK, 1000)
    one, same, other = (
        make_sequences(tokens, marks, 40, 5, (number, 3)) for number in (seed, seed, seed + 1)
    )
    for array, twin in zip(one, same, strict=True):
        assert (array == twin).all()
    assert one.input_ids.shape != other.input_ids.shape or (one.input_ids != other.input_ids).any()


def test_of_the_chosen_tokens_most_become_masks_some_stay_and_some_are_others():
    tokens = numbered([[20] * 500] * 4)
    size = 100_000
    made = make_sequences(tokens, Marks(START, END, MASK, size), 128, 20, (1,))
    chosen = made.masked_lm_weights > 0
    rows = np.arange(len(chosen))[:, None]
    now = made.input_ids[rows, made.masked_lm_positions][chosen]
    before = made.masked_lm_ids[chosen]
    shares = (now == MASK).mean(), (now == before).mean()
    assert shares == pytest.approx((0.8, 0.1), abs=0.02)
    others = now[(now != MASK) & (now != before)]
    assert others.mean() == pytest.approx(size / 2, rel=0.1)
    assert others.max() < size
    # Every place of a full sequence is as likely as any other.
    full = made.input_mask.all(axis=1)
    places = made.masked_lm_positions[full][:, :19]
    shares = np.histogram(places, 8, (0, 128))[0] / places.size
    assert shares == pytest.approx([1 / 8] * 8, abs=0.015)


# The usual counts of the embedded text, and how far means of a few passes may be off. With short
# sequences, one long document makes many more sequences of some pass.
COUNTS = {
    0.0: {
        "sequences": (1050, 20),
        "input_mask": (122, 1),
        "masked_lm_weights": (18.2, 0.2),
        "next_sentence_labels": (0.54, 0.02),
        "segment_ids": (64.2, 1.5),
    },
    0.1: {
        "sequences": (1180, 140),
        "input_mask": (116, 4),
        "masked_lm_weights": (17.3, 0.6),
        "next_sentence_labels": (0.54, 0.03),
        "segment_ids": (61, 3.5),
    },
}


@pytest.mark.parametrize("short", COUNTS)
def test_the_embedded_text_gives_what_plain_python_gives(
    plain_documents, embedded_vocabulary, monkeypatch, short
):
    """As many sequences, real tokens, predictions and random followers, over several passes."""
    if not short:  # without the parameter it is as in the original
        monkeypatch.setattr(plain_bert, "SHORT", 0.0)
        monkeypatch.setattr(module, "SHORT_SHARE", 0.0)
    ids = {token: number for number, token in enumerate(embedded_vocabulary)}
    tokens = Tokens.of([[[ids[one] for one in line] for line in text] for text in plain_documents])
    marks = Marks(ids["[CLS]"], ids["[SEP]"], ids["[MASK]"], len(ids))
    ours = [make_sequences(tokens, marks, 128, 20, (turn,)) for turn in range(20)]
    theirs = [
        plain_bert.sequences_of(plain_documents, embedded_vocabulary, 128, 20, Random(turn))
        for turn in range(3)
    ]
    for key, (usual, least) in COUNTS[short].items():
        if key == "sequences":
            counts = mean(map(len, theirs)), mean(len(made.input_ids) for made in ours)
        else:
            counts = (
                mean(sum(one[key]) for made in theirs for one in made),
                np.concatenate([getattr(made, key) for made in ours]).sum(axis=1).mean(),
            )
        assert counts == pytest.approx((usual, usual), abs=least), key
