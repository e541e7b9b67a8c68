"""Whatever happens to a log, a number is right or absent."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reperf.logs.formats import formats
from reperf.measuring.measure import Measurement

from tests.unit.logs.asking import measure, measure_written
from tests.unit.logs.written import STYLES, written

NAMES = sorted(name for name in formats() if STYLES[name].has_time)
formats_with_time = st.sampled_from(NAMES)
moderately = settings(max_examples=60, deadline=None)


def encode(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def all_of(name: str, content: bytes) -> list[Measurement]:
    return measure(content, log_format=name, facts=STYLES[name].facts)


def numbers(name: str, content: bytes) -> set[float]:
    return {one.throughput for one in all_of(name, content) if one.throughput is not None}


WHOLE = {name: measure_written(name, written(name)) for name in NAMES}


@moderately
@given(formats_with_time, st.data())
def test_a_cut_log_gives_its_number_or_none(name, data):
    content = encode(written(name))
    cut = data.draw(st.integers(0, len(content)))
    assert numbers(name, content[:cut]) <= {WHOLE[name].throughput}


@moderately
@given(formats_with_time, st.data())
def test_lines_that_are_missing_leave_the_number_or_none(name, data):
    lines = written(name)
    gone = data.draw(st.sets(st.integers(0, len(lines) - 1), max_size=5))
    left = [line for number, line in enumerate(lines) if number not in gone]
    for one in all_of(name, encode(left)):
        if one.throughput is not None:
            assert one.throughput == pytest.approx(WHOLE[name].throughput, rel=1e-6)


@moderately
@given(formats_with_time, st.data())
def test_lines_written_twice_change_nothing(name, data):
    lines = written(name)
    for _ in range(data.draw(st.integers(1, 4))):
        line = data.draw(st.integers(0, len(lines) - 1))
        lines.insert(data.draw(st.integers(0, len(lines))), lines[line])
    assert numbers(name, encode(lines)) <= {WHOLE[name].throughput}


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
    content = encode([*STYLES[name].head, *mixed])
    assert numbers(name, content) == {WHOLE[name].throughput}


def test_another_ranks_end_is_not_that_of_the_measured_one():
    head = len(STYLES["mllog"].head)
    mine, other = (
        [f"[1,{rank}]<stdout>:{line}" for line in written("mllog")[head:]] for rank in range(2)
    )
    content = encode([*STYLES["mllog"].head, mine[0], *other, *mine[1:]])
    assert numbers("mllog", content) == {WHOLE["mllog"].throughput}


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
    for one in all_of(name, encode([*STYLES[name].head, *mixed])):
        if one.throughput is not None:
            assert one.throughput == pytest.approx(WHOLE[name].throughput, rel=0.001)


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
    for one in all_of(name, changed.encode()):
        if one.throughput is not None:
            assert one.seconds == pytest.approx(WHOLE[name].seconds, abs=worth * 1.001 + 1e-6)
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
    for method in ("window", "published"):
        for one in measure(content, log_format=name, method=method, facts=STYLES[name].facts):
            assert one.status in ("ok", "refused")
            assert "\n" not in one.reason
    for one in measure(content):
        assert one.status in ("ok", "refused")
