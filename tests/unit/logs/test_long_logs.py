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
from tests.unit.logs.mlperf_lines import ABORTED
from tests.unit.logs.written import STYLES, written

NAMES = sorted(name for name in formats() if STYLES[name].has_time)
EACH_TIME = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
"""What is patched is the same in all examples of a test."""
OTHER = "other text, in lines that are none of a format's\n"
START = ':::MLLOG {"time_ms": 1600180167000, "key": "eval_start", "value": null}'
STOP = ':::MLLOG {"time_ms": 1600180167020, "key": "eval_stop", "value": null}'
BATCH = ':::MLLOG {"key": "global_batch_size", "value": 4096}'
OWN_WORDS = " validation loss at iteration 60 | lm loss value: 6.9 |"
ONEFLOW = written("oneflow-resnet50")


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


def outcome(one: Measurement) -> tuple:
    return one.status, one.reason, one.throughput, one.global_batch, one.sources


@pytest.mark.parametrize("name", NAMES)
@settings(EACH_TIME, max_examples=5)
@given(data=st.data())
def test_other_text_changes_nothing_wherever_it_stands(name, data):
    lines = written(name)
    whole = outcome(measure_written(name, lines))
    for _ in range(data.draw(st.integers(1, 3))):
        lines.insert(data.draw(st.integers(0, len(lines))), FILLER)
    assert outcome(measure_written(name, lines)) == whole


@pytest.mark.parametrize("name", NAMES)
def test_what_a_head_says_is_known_behind_other_text(name):
    lines = written(name)
    head = len(STYLES[name].head)
    for behind in (head, 0):
        long = [*lines[:behind], FILLER, *lines[behind:head], FILLER, *lines[head:]]
        for facts in ((), STYLES[name].facts):
            found, whole = (measure_written(name, one, facts=facts) for one in (long, lines))
            assert outcome(found) == outcome(whole)
    recognised = measure_one([BATCH, *lines[:head], FILLER, *lines[head:]])
    assert recognised.format == name
    assert recognised.global_batch == 4096 or "4096 by the log" in recognised.reason


class TestEvaluations:
    def among(self, *between: str, name: str = "oneflow-resnet50") -> Measurement:
        lines, at = written(name), len(STYLES[name].head) + 3
        return measure_written(name, [*lines[:at], *between, *lines[at:]])

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
        found = self.among(*between)
        assert outcome(found) == outcome(self.among(START, STOP))
        assert (found.status, found.evaluations, found.evaluated) == ("ok", 1, 0.02)

    @pytest.mark.parametrize(
        ("name", "between"),
        [
            ("oneflow-resnet50", (START, FILLER)),  # without an end
            ("oneflow-resnet50", (FILLER, STOP)),
            ("oneflow-resnet50", (FILLER, START, FILLER)),
            ("oneflow-resnet50", (*[START, STOP] * 100, FILLER)),  # too many to be added up
            ("megatron", (FILLER, OWN_WORDS)),
            ("megatron", (FILLER, OWN_WORDS, FILLER)),
        ],
    )
    def test_whose_time_is_not_known_are_heard_and_refused(self, name, between):
        reason = self.among(*between, name=name).reason
        assert reason.startswith("evaluations lie in the window: the first between ")

    def test_are_heard_before_a_gap_of_true_size(self, monkeypatch):
        monkeypatch.undo()
        long = other(LONGEST_GAP + (1 << 20))
        assert measure_written("mllog", [*written("mllog"), long]).status == "ok"
        found = self.among(START, STOP, long, name="mllog")
        assert (found.status, found.evaluations, found.evaluated) == ("ok", 1, 0.02)


@pytest.mark.parametrize("behind", ["", "RESULT,bert,1", FILLER], ids=["", "line", "text"])
@pytest.mark.parametrize("name", ["mllog", "mlperf"])
@pytest.mark.parametrize(
    ("stopped", "reason"),
    [
        ("success", ""),
        ("aborted", ABORTED),
        (None, "the end of the run is not in the log: the log"),
    ],
)
def test_the_end_of_a_run_is_found_before_any_amount_of_text(name, stopped, reason, behind):
    lines = written(name)
    lines[-1:] = [lines[-1].replace("success", stopped)] if stopped else []
    measured = measure_written(name, [*lines, behind])
    assert measured.reason.startswith(reason)
    assert (measured.status == "ok") == (reason == "")


@pytest.mark.parametrize("where", [0, 8, 10_000])
def test_facts_that_disagree_are_heard(where):
    lines = [*ONEFLOW[:where], FILLER, BATCH, FILLER, *ONEFLOW[where:]]
    assert "4096 by the log" in measure_written("oneflow-resnet50", lines).reason


def test_facts_of_a_second_run_stand_anywhere_before_it():
    """Its own batch is half of the first run's."""
    half = written("oneflow-resnet50", start=1000.0)
    at = len(STYLES["oneflow-resnet50"].head)
    head = [line.replace("= 8", "= 4") for line in half[:at]]
    lines = [*ONEFLOW, FILLER, *head, FILLER, *half[at:]]
    first, second = measure("\n".join([*lines, ""]).encode(), log_format="oneflow-resnet50")
    assert second.global_batch * 2 == first.global_batch


def test_more_text_than_is_kept_before_the_first_record_is_refused(monkeypatch):
    monkeypatch.setattr("reperf.logs.recognise.LONGEST_HEAD", 1 << 11)
    reason = measure_one([FILLER, *ONEFLOW]).reason
    assert reason == "more than 2048 bytes of other text stand before its records"
    assert measure_one([FILLER]).reason == NO_FORMAT


@pytest.mark.parametrize("ranks", [1, 8, 32])
@pytest.mark.parametrize("name", ["mllog", "oneflow-resnet50"])
def test_what_is_skipped_of_a_long_log_changes_nothing(name, ranks, monkeypatch):
    """The last line of the measured rank is found among those of the others."""
    monkeypatch.undo()
    lines = written(name, 3_000)
    every = [f"[1,{rank}]<stdout>:{line}" for line in lines for rank in range(ranks)]
    found, whole = (measure_written(name, one) for one in (every, lines[:200] + lines[-1:]))
    assert (found.status, found.throughput) == ("ok", whole.throughput)
    assert (found.samples, found.last_printed) == (whole.samples, 3_000)


@pytest.mark.parametrize("at", [500, 2_000, 2_990])
def test_another_run_in_what_could_be_skipped_is_measured(at):
    lines = written("oneflow-resnet50", 3_000)[:at] + written("oneflow-resnet50", start=1e6)
    found = measure("\n".join([*lines, ""]).encode(), log_format="oneflow-resnet50")
    assert [(one.status, one.run) for one in found] == [("ok", 1), ("ok", 2)]


def test_a_line_that_is_too_long_is_no_record_and_hides_none():
    long = "x" * (3 * LONGEST_LINE)
    found = measure_written("oneflow-resnet50", [long, *ONEFLOW[:6], long, *ONEFLOW[6:]])
    assert outcome(found) == outcome(measure_written("oneflow-resnet50", ONEFLOW))
    assert measure_one([long]).reason == NO_FORMAT


def test_a_piece_of_nothing_but_colours_hides_nothing_behind_it(monkeypatch):
    monkeypatch.undo()
    size = len(next(blocks(io.BytesIO(b"x" * (2 * LONGEST_LINE)))))
    short = 3 * size % 4  # so many of three bytes, and the rest of four
    colours = b"\x1b[m" * short + b"\x1b[0m" * ((size - 3 * short) // 4)
    lines = "".join(f"\n{line}" for line in ONEFLOW).encode()
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


@EACH_TIME
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
    every = [f"[1,3]<stdout>:{line}" for line in ONEFLOW]

    def found(text: str) -> list:
        return [one for *_, one in find_records(text.encode(), log_format, log_format.reader())]

    for ends in ("\n", "\r", "\r\n", "\r\r\n"):
        printed = [record.iteration for record in found(ends.join([*every, ""]))]
        assert printed == list(range(20, 201, 20))
    mixed = "\n".join([every[-3], "bar\rbar\r" + ONEFLOW[-2], every[-1], ""])
    assert [record.rank for record in found(mixed)] == [(3,), (), (3,)]


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        (r"\bbatch_size = (\d{1,9})\s", (b"batch_size = ",)),
        (r"(?:mp|x)[ =](\d{1,9})x?yz?", (b"y",)),
        (r"one \d|\d two|\d", (b"one ", b" two", b"")),
        (rb"abc*d\.e", (b"d.e",)),
    ],
)
def test_only_what_every_match_holds_is_searched_for_first(pattern, literals):
    assert literals_in(pattern) == literals
