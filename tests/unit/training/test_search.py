"""The search for the largest batch, on made-up memories: what it finds, after how many trials."""

from collections.abc import Callable
from math import ceil, log, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.training.largest import Tried, largest

MOST = 10_000_000
MULTIPLES = st.sampled_from([1, 8, 24, 512])


def searched(
    need: Callable[[int], int], there: int, *, multiple: int, said: int | None, most: int = MOST
) -> tuple[int | None, list[int]]:
    """What the search finds, and the batch sizes that it tried.

    Args:
        need: bytes that a batch takes.
        there: bytes that there really are.
        said: bytes that there are said to be.
    """
    tried = []

    def attempt(batch: int) -> Tried:
        tried.append(batch)
        trains = need(batch) <= there
        return Tried(trains, need(batch) if trains else None)

    return largest(attempt, multiple=multiple, memory=said, most=most), tried


@given(MULTIPLES, st.integers(0, 10**10), st.integers(1, 10**8), st.integers(1, 10**11))
def test_four_trials_or_some_more_do_where_memory_grows_in_a_straight_line(
    multiple, fixed, slope, there
):
    found, tried = searched(lambda n: fixed + slope * n, there, multiple=multiple, said=there)
    fits = min((there - fixed) // slope, MOST) // multiple * multiple
    assert found == (fits if fits >= multiple else None)
    # While batches differ by less than a fiftieth of memory, the next is four times as large.
    tells = there / 50 / slope / multiple
    assert len(tried) <= 4 + max(0, ceil(log(max(1, tells), 4)))


@st.composite
def memories(draw) -> Callable[[int], int]:
    """Bytes by batch: a line with steps, bends and a fixed part, which never falls."""
    fixed, slope = draw(st.integers(0, 10**10)), draw(st.integers(0, 10**7))
    steps = draw(st.lists(st.tuples(st.integers(1, MOST), st.integers(0, 10**9)), max_size=5))
    bend, power = draw(st.integers(0, 10**4)), draw(st.sampled_from([1, 1.5, 2]))

    def need(batch: int) -> int:
        jumps = sum(size for place, size in steps if batch >= place)
        return int(fixed + slope * batch + bend * batch**power) + jumps

    return need


@given(memories(), MULTIPLES, st.integers(1, 10**11), st.none() | st.integers(1, 10**11))
def test_whatever_memory_does_the_found_batch_trains_and_the_next_one_does_not(
    need, multiple, there, said
):
    found, tried = searched(need, there, multiple=multiple, said=said)
    assert len(set(tried)) == len(tried)
    assert all(batch % multiple == 0 and 0 < batch <= MOST for batch in tried)
    if found is None:
        assert tried == [multiple]
        assert need(multiple) > there
        return
    assert need(found) <= there
    assert found in tried
    assert found + multiple > MOST or (need(found + multiple) > there and found + multiple in tried)
    # Up in steps that double, back down by halves, and a few predictions that were wrong.
    assert len(tried) <= 10 + 4 * log2(MOST / multiple)


@given(st.integers(1, 100), MULTIPLES)
def test_no_batch_above_the_most_is_tried(most, multiple):
    limit = most * multiple + 1
    found, tried = searched(lambda _: 1, 10, multiple=multiple, said=10, most=limit)
    assert found == max(tried) == limit // multiple * multiple


@pytest.mark.parametrize("missing", [10**8, 3 * 10**9])
def test_memory_that_others_take_costs_a_few_more_trials(missing):
    """As a GPU's context, and what an allocator has cut into pieces that are too small."""
    said, fixed, slope = 80 * 10**9, 4 * 10**9, 160_000_000
    there = said - missing
    found, tried = searched(lambda n: fixed + slope * n, there, multiple=8, said=said)
    assert found == (there - fixed) // slope // 8 * 8
    assert len(tried) <= 7
