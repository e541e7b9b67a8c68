"""Whatever ranks and bytes are in a log, a number is right or absent; see test_edited_logs."""

import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reperf.logs.formats import formats
from reperf.measuring.measure import Measurement

from tests.unit.logs.asking import encode, measure, measure_written, runs_written
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


def digits_of_times(name: str, content: str) -> list[int]:
    """Where a log's times have their digits."""
    groups = {"time", "duration"} & set(formats()[name].line.groupindex)
    if not groups:  # the two that are JSON
        matches = re.finditer(r'"(?:seconds|time_ms)": (?P<time>[\d.]+)', content)
        groups = {"time"}
    else:
        matches = re.finditer(formats()[name].line.pattern.decode(), content)
    spans = [match.span(group) for match in matches for group in groups if match[group]]
    return [at for start, stop in spans for at in range(start, stop) if content[at].isdigit()]


@moderately
@given(formats_with_time, st.data())
def test_a_changed_digit_of_a_time_changes_the_time_by_no_more(name, data):
    """The seconds measured are the true ones, or differ by what one digit is worth there."""
    content = encode(written(name)).decode()
    at = data.draw(st.sampled_from(digits_of_times(name, content)))
    digit = data.draw(st.sampled_from("0123456789"))
    changed = content[:at] + digit + content[at + 1 :]
    worth = abs(int(digit) - int(content[at])) * place_value(content, at)
    worth *= STYLES[name].covers
    for one in measured(name, changed.encode()):
        assert one.seconds == pytest.approx(whole(name).seconds, abs=worth * 1.001 + 1e-6)
        assert one.throughput == pytest.approx(one.samples / one.seconds)


def place_value(content: str, at: int) -> float:
    """Seconds that one step of the digit at some place makes, at most."""
    written_in = re.match(r"\d*", content[at + 1 :])[0]
    before = re.search(r"[\d:/ ,.-]*$", content[:at])[0]
    if re.search(r"[.,]\d*$", before):  # behind the point of a second
        return 10.0 ** -(len(re.search(r"\d*$", before)[0]) + 1)
    if re.match(r"\d?:\d\d:\d\d", content[at + 1 :]):
        return 36000.0 if len(written_in) else 3600.0
    if re.match(r"\d?:\d\d", content[at + 1 :]):
        return 600.0 if len(written_in) else 60.0
    if re.match(r"\d*[-/]|\d?[ T]\d\d:", content[at + 1 :]):
        return 400 * 86400.0 * 1000
    return 10.0 ** len(written_in)


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
