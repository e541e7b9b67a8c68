"""What matters is found wherever it stands: behind gigabytes of other text, or before them."""

import io
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reperf.logs import scan
from reperf.logs.format import literals_in
from reperf.logs.formats import formats
from reperf.logs.recognise import NO_FORMAT
from reperf.logs.scan import LONGEST_GAP, LONGEST_LINE, blocks, find_records
from reperf.measuring.measure import Measurement

from tests.unit.logs.asking import measure, measure_one, measure_written
from tests.unit.logs.written import STYLES, written

NAMES = sorted(name for name in formats() if STYLES[name].has_time)
OTHER = "other text, in lines that are none of a format's\n"
START = ':::MLLOG {"time_ms": 1600180167000, "key": "eval_start", "value": null}'
STOP = ':::MLLOG {"time_ms": 1600180167020, "key": "eval_stop", "value": null}'
BATCH = ':::MLLOG {"key": "global_batch_size", "value": 4096}'


def other(size: int) -> str:
    """One entry of `lines` that is about so many bytes of other text."""
    return (OTHER * (size // len(OTHER) + 1)).rstrip("\n")


FILLER = other(4 << 10)


@pytest.fixture(autouse=True)
def short_gaps(monkeypatch):
    """Blocks and gaps so small that the filler is long."""
    monkeypatch.setattr("reperf.logs.logged_runs.LONGEST_GAP", 1 << 10)
    monkeypatch.setattr("reperf.logs.recognise.LONGEST_GAP", 1 << 10)
    monkeypatch.setattr("reperf.logs.scan.SMALLEST_BLOCK", 1 << 9)


def measured(name: str, lines: list[str]) -> Measurement:
    return measure_one(lines, facts=STYLES[name].facts, log_format=name)


def outcome(one: Measurement) -> tuple:
    return one.status, one.reason, one.throughput, one.global_batch, one.sources


@pytest.mark.parametrize("name", NAMES)
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_other_text_changes_nothing_wherever_it_stands(name, data):
    lines = written(name)
    whole = outcome(measured(name, lines))
    for _ in range(data.draw(st.integers(1, 3))):
        lines.insert(data.draw(st.integers(0, len(lines))), FILLER)
    assert outcome(measured(name, lines)) == whole


@pytest.mark.parametrize("name", NAMES)
def test_what_a_head_says_is_known_behind_other_text(name):
    lines = written(name)
    head = len(STYLES[name].head)
    whole = measure_one(lines, log_format=name)
    for behind in (head, 0):
        long = [*lines[:behind], FILLER, *lines[behind:head], FILLER, *lines[head:]]
        assert outcome(measure_one(long, log_format=name)) == outcome(whole)
        assert outcome(measured(name, long)) == outcome(measured(name, lines))


@pytest.mark.parametrize("name", NAMES)
def test_a_log_is_recognised_behind_other_text_and_all_before_that_is_read(name):
    head = len(STYLES[name].head)
    lines = [BATCH, *written(name)[:head], FILLER, *written(name)[head:]]
    found = measure_one(lines)
    assert found.format == name
    assert found.sources.get("global_batch") == "the log" or "4096 by the log" in found.reason


def around(lines: list[str], at: int, *between: str) -> list[str]:
    return [*lines[:at], *between, *lines[at:]]


class TestEvaluations:
    LINES = written("oneflow-resnet50", 200)
    AT = len(STYLES["oneflow-resnet50"].head) + 3

    @pytest.mark.parametrize(
        "between",
        [
            (FILLER, START, STOP, FILLER),
            (START, FILLER, STOP),
            (FILLER, START, FILLER, STOP, FILLER),
            (START, STOP, FILLER),
            (FILLER, START, STOP),
        ],
    )
    def test_take_their_time_wherever_they_stand(self, between):
        found = measured("oneflow-resnet50", around(self.LINES, self.AT, *between))
        same = measured("oneflow-resnet50", around(self.LINES, self.AT, START, STOP))
        assert outcome(found) == outcome(same)
        assert (found.status, found.evaluations, found.evaluated) == ("ok", 1, 0.02)

    @pytest.mark.parametrize("between", [(START, FILLER), (FILLER, STOP), (FILLER, START, FILLER)])
    def test_without_an_end_are_refused(self, between):
        found = measured("oneflow-resnet50", around(self.LINES, self.AT, *between))
        assert found.reason.startswith("evaluations lie in the window: the first between ")

    def test_too_many_to_be_added_up_are_refused(self):
        many = [START, STOP] * 100
        found = measured("oneflow-resnet50", around(self.LINES, self.AT, *many, FILLER))
        assert found.reason.startswith("evaluations lie in the window: the first between ")

    @pytest.mark.parametrize("behind", [(), (FILLER,)])
    def test_in_a_programs_own_words_are_heard(self, behind):
        name = "megatron"
        lines = written(name, 200)
        said = " validation loss at iteration 60 | lm loss value: 6.9 |"
        found = measured(name, around(lines, len(STYLES[name].head) + 3, FILLER, said, *behind))
        assert found.reason.startswith("evaluations lie in the window: the first between ")


class TestEndOfARun:
    def test_is_found_before_any_amount_of_text(self):
        assert measured("mllog", [*written("mllog"), FILLER]).status == "ok"

    def test_that_failed_is_named(self):
        *lines, stop = written("mllog")
        reason = measured("mllog", [*lines, stop.replace("success", "aborted"), FILLER]).reason
        assert reason == "the log says that the run stopped as aborted, without success"

    def test_that_is_not_there_is_missed(self):
        assert "the end of the run" in measured("mllog", [*written("mllog")[:-1], FILLER]).reason


class TestFacts:
    @pytest.mark.parametrize("where", [0, 8, 10_000])
    def test_that_disagree_are_heard(self, where):
        lines = written("oneflow-resnet50", 200)
        lines[where:where] = [FILLER, BATCH, FILLER]
        assert "4096 by the log" in measured("oneflow-resnet50", lines).reason

    def test_of_a_second_run_stand_anywhere_before_it(self):
        """Its own batch is half of the first run's."""
        one = written("oneflow-resnet50")
        half = written("oneflow-resnet50", start=1000.0)
        head = [line.replace("= 8", "= 4") for line in half[: len(STYLES["oneflow-resnet50"].head)]]
        lines = [*one, FILLER, *head, FILLER, *half[len(head) :]]
        content = "".join(f"{line}\n" for line in lines).encode()
        first, second = measure(content, log_format="oneflow-resnet50")
        assert second.global_batch * 2 == first.global_batch


def test_more_text_than_is_kept_before_the_first_record_is_refused(monkeypatch):
    monkeypatch.setattr("reperf.logs.recognise.LONGEST_HEAD", 1 << 11)
    reason = measure_one([FILLER, *written("oneflow-resnet50")]).reason
    assert reason == "more than 2048 bytes of other text stand before its records"
    assert measure_one([FILLER]).reason == NO_FORMAT


def test_a_gap_of_true_size_hides_nothing(monkeypatch):
    monkeypatch.undo()
    lines = written("mllog", 200)
    long = other(LONGEST_GAP + (1 << 20))
    assert measured("mllog", [*lines, long]).status == "ok"
    found = measured("mllog", around(lines, len(STYLES["mllog"].head) + 3, START, STOP, long))
    assert (found.status, found.evaluations, found.evaluated) == ("ok", 1, 0.02)


@pytest.mark.parametrize("ranks", [1, 8, 32])
@pytest.mark.parametrize("name", ["mllog", "oneflow-resnet50"])
def test_what_is_skipped_of_a_long_log_changes_nothing(name, ranks, monkeypatch):
    """The last line of the measured rank is found among those of the others."""
    monkeypatch.undo()
    lines = written(name, 3_000)
    every = [f"[1,{rank}]<stdout>:{line}" for line in lines for rank in range(ranks)]
    found, whole = measured(name, every), measured(name, lines[:200] + lines[-1:])
    assert (found.status, found.throughput) == ("ok", whole.throughput)
    assert (found.samples, found.last_printed) == (whole.samples, 3_000)


@pytest.mark.parametrize("at", [500, 2_000, 2_990])
def test_another_run_in_what_could_be_skipped_is_measured(at):
    lines = written("oneflow-resnet50", 3_000)
    other = written("oneflow-resnet50", 200, start=1e6)
    content = "".join(f"{line}\n" for line in [*lines[:at], *other]).encode()
    found = measure(content, log_format="oneflow-resnet50")
    assert [(one.status, one.run) for one in found] == [("ok", 1), ("ok", 2)]


def test_a_line_that_is_too_long_is_no_record_and_hides_none():
    lines = written("oneflow-resnet50", 200)
    long = "x" * (3 * LONGEST_LINE)
    whole = outcome(measured("oneflow-resnet50", lines))
    assert outcome(measured("oneflow-resnet50", [long, *lines[:6], long, *lines[6:]])) == whole
    assert measure_one([long]).reason == NO_FORMAT


def test_a_piece_of_nothing_but_colours_hides_nothing_behind_it(monkeypatch):
    monkeypatch.undo()
    size = len(next(blocks(io.BytesIO(b"x" * (2 * LONGEST_LINE)))))
    short = 3 * size % 4  # so many of three bytes, and the rest of four
    colours = b"\x1b[m" * short + b"\x1b[0m" * ((size - 3 * short) // 4)
    lines = "".join(f"\n{line}" for line in written("oneflow-resnet50", 200)).encode()
    assert next(blocks(io.BytesIO(colours + lines))) == b""
    whole = measure_written("oneflow-resnet50", lines)
    assert outcome(measure_written("oneflow-resnet50", colours + lines)) == outcome(whole)
    assert whole.status == "ok"


class Drip(io.BytesIO):
    """A stream that often gives less than it is asked for."""

    def __init__(self, content: bytes, random: Random) -> None:
        super().__init__(content)
        self._random = random

    def readinto(self, buffer: memoryview) -> int:
        return super().readinto(buffer[: self._random.randint(1, len(buffer))])


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.text("ab\n\r", max_size=400), random=st.randoms(use_true_random=False))
def test_pieces_end_where_lines_end_and_hold_all_that_was_read(content, random, monkeypatch):
    for name, size in {"SMALLEST_BLOCK": 4, "BLOCK": 16, "LONGEST_LINE": 24}.items():
        monkeypatch.setattr(scan, name, size)
    pieces = list(scan.blocks(Drip(content.encode(), random)))
    assert b"".join(pieces) == content.encode()
    assert all(0 < len(piece) < 24 + 16 for piece in pieces)
    for piece in pieces[:-1]:
        assert piece.endswith(b"\n") or b"\n" not in piece
        assert piece.endswith((b"\n", b"\r")) or len(piece) >= 24


def test_lines_that_end_in_carriage_returns_are_found_as_others_are():
    log_format = formats()["oneflow-resnet50"]
    lines = written("oneflow-resnet50")
    every = [f"[1,3]<stdout>:{line}" for line in lines]
    printed = [int(line.split("iter ")[1].split(",")[0]) for line in lines if " iter " in line]
    for ends in ("\n", "\r", "\r\n", "\r\r\n"):
        content = ends.join([*every, ""]).encode()
        found = find_records(content, log_format, log_format.reader())
        assert [record.iteration for *_, record in found] == printed
    mixed = "\n".join([every[-3], "bar\rbar\r" + lines[-2], every[-1], ""]).encode()
    found = list(find_records(mixed, log_format, log_format.reader()))
    assert [record.rank for *_, record in found] == [(3,), (), (3,)]


def test_only_what_every_match_holds_is_searched_for_first():
    assert literals_in(r"\bbatch_size = (\d{1,9})\s") == (b"batch_size = ",)
    assert literals_in(r"(?:mp|x)[ =](\d{1,9})x?yz?") == (b"y",)
    assert literals_in(r"one \d|\d two|\d") == (b"one ", b" two", b"")
    assert literals_in(rb"abc*d\.e") == (b"d.e",)
