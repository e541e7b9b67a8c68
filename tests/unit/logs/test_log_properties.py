"""Whatever ranks and bytes are in a log, a number is right or absent; see test_edited_logs."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reperf.logs.formats import formats
from reperf.measuring.measure import Measurement

from tests.unit.logs.asking import measure, measure_written, runs_written
from tests.unit.logs.written import STYLES, TIMED, written

formats_with_time = st.sampled_from(TIMED)
moderately = settings(max_examples=60)


def measured(name: str, log: list[str] | bytes) -> list[Measurement]:
    """The runs in a log that give a number."""
    return [one for one in runs_written(name, log) if one.throughput is not None]


def numbers(name: str, lines: list[str]) -> set[float]:
    return {one.throughput for one in measured(name, lines)}


@cache
def whole(name: str) -> Measurement:
    """What the written log gives."""
    return measure_written(name, written(name))


@moderately
@given(
    # Where other ranks evaluate at other times, nothing tells when a log of evaluations trains.
    formats_with_time.filter(lambda name: name != "mlperf-evaluations"),
    st.integers(2, 4),
    st.data(),
)
def test_labelled_ranks_in_any_order_do_not_matter(name, ranks, data):
    head = len(STYLES[name].head)
    of_rank = [
        [f"[1,{rank}]<stdout>:{line}" for line in written(name, start=rank / 512)[head:]]
        for rank in range(ranks)
    ]
    order = [rank for rank, lines in enumerate(of_rank) for _ in lines]
    order = data.draw(st.permutations(order)) if len(order) < 150 else order[::-1]
    mixed = [of_rank[rank].pop(0) for rank in order]
    assert numbers(name, [*STYLES[name].head, *mixed]) == {whole(name).throughput}


def test_another_ranks_end_is_not_that_of_the_measured_one():
    head = STYLES["mllog"].head
    mine, other = (
        [f"[1,{rank}]<stdout>:{line}" for line in written("mllog")[len(head) :]]
        for rank in range(2)
    )
    lines = [*head, mine[0], *other, *mine[1:]]
    assert numbers("mllog", lines) == {whole("mllog").throughput}


def test_ranks_are_told_apart_by_the_labels_of_four_launchers():
    mine, late = (
        [f"0: 0: 0: [default{rank}]:{line}" for line in written("mllog", start=rank / 512)]
        for rank in range(2)
    )
    mixed = [line for pair in zip(late, mine, strict=True) for line in pair]
    assert numbers("mllog", mixed) == {whole("mllog").throughput}


@moderately
@given(formats_with_time, st.data())
def test_unlabelled_ranks_in_any_order_give_no_other_number(name, data):
    head = len(STYLES[name].head)
    mine, other = written(name)[head:], written(name, start=0.004)[head:]
    order = data.draw(st.lists(st.booleans(), min_size=len(mine), max_size=len(mine)))
    mixed, left = [], [list(mine), list(other)]
    for second in order:
        mixed.append(left[second].pop(0) if left[second] else left[not second].pop(0))
    mixed += left[0] + left[1]
    for one in measured(name, [*STYLES[name].head, *mixed]):
        assert one.throughput == pytest.approx(whole(name).throughput, rel=0.001)


@moderately
@given(st.sampled_from(sorted(formats())), st.binary(max_size=400), st.data())
def test_no_bytes_crash_a_parser(name, noise, data):
    line = STYLES[name].line(20, 5.0, 128.0).encode()
    at = data.draw(st.integers(0, len(line)))
    pieces = [line[:at], noise, line[at:], b"\n", line, data.draw(st.sampled_from([b"", b"\n"]))]
    content = b"".join(data.draw(st.permutations(pieces)))
    for results in (
        *(runs_written(name, content, method=method) for method in ("window", "published")),
        measure(content),
    ):
        assert {one.status for one in results} <= {"ok", "refused"}
        assert not any("\n" in one.reason for one in results)
