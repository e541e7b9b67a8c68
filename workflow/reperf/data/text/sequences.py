"""Pairs of sentences and their masks, by the rules of google-research/bert.

Which sentences go together is decided one pair after the other, as in the original's
create_pretraining_data.py; all else is done by numpy for all pairs of a chunk at once. Documents
are those of a chunk, as the original's are those of the files that it is given together: the next
sentence that is none is drawn from them.

No random number comes from anything but Random.random, Random.getrandbits and Generator.random,
whose numbers stay the same in all versions.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from random import Random
from typing import NamedTuple

import numpy as np

from reperf.data.text import AROUND

SHORT_SHARE = 0.1  # the share of documents that get sequences of a random length
MASKED_SHARE = 0.15  # the share of a sequence's tokens that are masked
MASK_BELOW, KEEP_BELOW = 0.8, 0.9
"""Of a random number from 0 to 1: below the first a token is masked, below the second it stays,
else a random token replaces it."""
TRIES = 10  # how often another document than the sentence's is drawn for


class Tokens(NamedTuple):
    """The tokens of some documents."""

    ids: np.ndarray  # of all of them, int32
    edges: list[int]  # where each sentence begins in `ids`, and where the last one ends
    documents: list[int]  # the number of the first sentence of each document, and of all sentences

    @classmethod
    def of(cls, documents: Iterable[Sequence[Sequence[int]]]) -> "Tokens":
        """The tokens of documents, which are lists of their sentences' ids; empty ones go."""
        kept = [[ids for ids in document if ids] for document in documents]
        kept = [document for document in kept if document]
        sentences = list(chain.from_iterable(kept))
        return cls(
            np.fromiter(chain.from_iterable(sentences), np.int32),
            list(accumulate(map(len, sentences), initial=0)),
            list(accumulate(map(len, kept), initial=0)),
        )


class Marks(NamedTuple):
    """The ids of a vocabulary that the sequences are made with."""

    start: int
    end: int
    mask: int
    size: int


class Sequences(NamedTuple):
    """Pairs of sentences, N of S tokens, with P predictions at most: the keys of a record."""

    input_ids: np.ndarray
    input_mask: np.ndarray
    masked_lm_ids: np.ndarray
    masked_lm_positions: np.ndarray
    masked_lm_weights: np.ndarray
    next_sentence_labels: np.ndarray
    segment_ids: np.ndarray


def make_sequences(
    tokens: Tokens, marks: Marks, length: int, predictions: int, seed: Sequence[int]
) -> Sequences:
    """All sequences of one pass over some documents, in a random order that `seed` decides.

    `length` is S, padding included; `predictions` is P.
    """
    draws = np.random.default_rng(list(seed))
    pairs = list(_pairs(tokens, length - AROUND, Random("/".join(map(str, seed)))))
    table = np.array(pairs, np.int64).reshape(-1, 5)
    shuffled = table[draws.random(len(table)).argsort()]
    first, first_size, second, second_size, random_next = shuffled.T[:, :, None]
    places = np.arange(length)
    middle = first_size + 1  # where the first half's end is marked, [N, 1] like the others
    last = middle + second_size + 1
    source = np.where(places > middle, second + places - middle - 1, first + places - 1)
    # The halves between their marks; 0 is padding.
    joined = tokens.ids[np.clip(source, 0, len(tokens.ids) - 1)]
    joined[places > last] = 0
    joined[:, 0] = marks.start
    rows = np.arange(len(table))[:, None]
    joined[rows, middle] = joined[rows, last] = marks.end
    # What is masked.
    inside = (places > 0) & (places < last) & (places != middle)
    count = np.rint((last + 1) * MASKED_SHARE).clip(1, predictions)
    taken = np.arange(predictions) < count
    drawn = np.where(inside, draws.random(joined.shape), 2).argsort(axis=1)[:, :predictions]
    # Places beyond a sequence's predictions come last, and become 0.
    positions = np.sort(np.where(taken, drawn, length), axis=1) * taken
    answers = joined[rows, positions] * taken
    dice = draws.random(taken.shape)
    others = (draws.random(taken.shape) * marks.size).astype(np.int32)
    put = np.where(dice < MASK_BELOW, marks.mask, np.where(dice < KEEP_BELOW, answers, others))
    joined[np.broadcast_to(rows, taken.shape)[taken], positions[taken]] = put[taken]
    return Sequences(
        input_ids=joined,
        input_mask=places <= last,
        masked_lm_ids=answers,
        masked_lm_positions=positions,
        masked_lm_weights=taken.astype("<f4"),
        next_sentence_labels=random_next,
        segment_ids=(places > middle) & (places <= last),
    )


def _pairs(tokens: Tokens, most: int, chance: Random) -> Iterable[tuple[int, int, int, int, bool]]:
    """The pairs of one pass over all documents, `most` tokens each at most.

    Yields:
        where the first half begins in the tokens, its size, the same of the second half, and
        whether that is of another document.
    """
    edges, documents = tokens.edges, tokens.documents
    for number in range(len(documents) - 1):
        at, end = documents[number], documents[number + 1]
        target = most
        if chance.random() < SHORT_SHARE:
            target = 2 + _below(chance, most - 1)
        while at < end:
            # As many sentences as reach the target, or all that are left.
            stop = min(bisect_left(edges, edges[at] + target, at + 1), end)
            split = at + 1 + (_below(chance, stop - at - 1) if stop - at > 1 else 0)
            first_size = edges[split] - edges[at]
            random_next = stop - at == 1 or chance.random() < 0.5
            if random_next:
                begin, limit = _elsewhere(documents, number, chance)
                wanted = edges[begin] + target - first_size
                finish = min(bisect_left(edges, wanted, begin + 1), limit)
                following = split  # the sentences that were not used come again
            else:
                begin, finish, following = split, stop, stop
            second_size = edges[finish] - edges[begin]
            first, second = _cut(first_size, second_size, most)
            first_start = edges[at] + _ones(chance, first_size - first)
            second_start = edges[begin] + _ones(chance, second_size - second)
            yield first_start, first, second_start, second, random_next
            at = following


def _elsewhere(documents: Sequence[int], number: int, chance: Random) -> tuple[int, int]:
    """A random sentence, most probably of another document, and where its document ends."""
    for _ in range(TRIES):
        other = _below(chance, len(documents) - 1)
        if other != number:
            break
    begin, end = documents[other], documents[other + 1]
    return begin + _below(chance, end - begin), end


def _cut(first: int, second: int, most: int) -> tuple[int, int]:
    """The sizes of two halves after cuts, each of a token of the longer half, else the second."""
    excess = max(0, first + second - most)
    from_longer = min(excess, abs(first - second))
    if first > second:
        first -= from_longer
    else:
        second -= from_longer
    rest = excess - from_longer
    return first - rest // 2, second - (rest + 1) // 2


def _ones(chance: Random, count: int) -> int:
    """How often a coin shows heads: the tokens that are lost at the front, not at the end."""
    return chance.getrandbits(count).bit_count() if count else 0


def _below(chance: Random, limit: int) -> int:
    return int(chance.random() * limit)
