"""What matters is found wherever it stands: behind gigabytes of other text, or before them."""

import bz2
import gzip
import io
import lzma
import re
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reperf.logs import log_file
from reperf.logs.format import literals_in
from reperf.logs.formats import formats
from reperf.logs.log_file import LONGEST_LINE, LogFile
from reperf.logs.recognise import NO_FORMAT
from reperf.logs.scan import find_records
from reperf.measuring.measure import Measurement

from tests.unit.logs.asking import encode, measure, measure_one, measure_written
from tests.unit.logs.mlperf_lines import ABORTED
from tests.unit.logs.written import STYLES, written

NAMES = sorted(name for name in formats() if STYLES[name].has_time)
EACH_TIME = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
"""What is patched is the same in all examples of a test."""
OTHER = "other text, in lines that are none of a format's\n"
START = ':::MLLOG {"time_ms": 1600180167000, "key": "eval_start", "value": null}'
STOP = ':::MLLOG {"time_ms": 1600180167020, "key": "eval_stop", "value": null}'
OWN_WORDS = " validation loss at iteration 60 | lm loss value: 6.9 |"
ONEFLOW = written("oneflow-resnet50")


def other(size: int) -> str:
    """One entry of `lines` that is about so many bytes of other text."""
    return (OTHER * (size // len(OTHER) + 1)).rstrip("\n")


FILLER = other(4 << 10)


@pytest.fixture(autouse=True)
def short_gaps(monkeypatch):
    """Blocks and gaps so small that the filler is long."""
    monkeypatch.setattr("reperf.logs.recognise.BEGINNING", 1 << 10)
    monkeypatch.setattr("reperf.logs.log_file.SMALLEST_CHUNK", 1 << 9)


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


class TestEvaluations:
    def among(self, *between: str, name: str = "oneflow-resnet50") -> Measurement:
        lines, at = written(name), len(STYLES[name].head) + 3
        return measure_written(name, [*lines[:at], *between, *lines[at:]])

    @pytest.mark.parametrize(
        "between", [(START, FILLER, STOP), (FILLER, START, FILLER, STOP, FILLER)]
    )
    def test_take_their_time_wherever_they_stand(self, between):
        found = self.among(*between)
        assert outcome(found) == outcome(self.among(START, STOP))
        assert (found.status, found.evaluations, found.evaluated) == ("ok", 1, 0.02)

    @pytest.mark.parametrize(
        ("name", "between"),
        [
            ("oneflow-resnet50", (FILLER, START, FILLER)),  # without an end
            ("oneflow-resnet50", (FILLER, STOP)),
            ("megatron", (FILLER, OWN_WORDS, FILLER)),
        ],
    )
    def test_whose_time_is_not_known_are_heard_and_refused(self, name, between):
        reason = self.among(*between, name=name).reason
        assert reason.startswith("evaluations lie in the window: the first between ")

    def test_may_lie_in_a_gap_that_is_not_read_whole(self, monkeypatch):
        monkeypatch.setattr("reperf.logs.logged_runs.MOST_TEXT", 1 << 11)
        assert measure_written("mllog", [*written("mllog"), FILLER]).status == "ok"
        reason = self.among(FILLER, name="mllog").reason
        assert reason.startswith("evaluations lie in the window: the first between ")


@pytest.mark.parametrize("behind", ["", "RESULT,bert,1", FILLER], ids=["", "line", "text"])
@pytest.mark.parametrize("name", ["mllog", "mlperf"])
@pytest.mark.parametrize(
    ("stopped", "reason"),
    [("success", ""), ("aborted", ABORTED), (None, "the end of the run is not in the log")],
)
def test_the_end_of_a_run_is_found_before_any_amount_of_text(name, stopped, reason, behind):
    lines = written(name)
    lines[-1:] = [lines[-1].replace("success", stopped)] if stopped else []
    measured = measure_written(name, [*lines, behind])
    assert measured.reason.startswith(reason)
    assert (measured.status == "ok") == (reason == "")


def test_facts_of_a_second_run_stand_anywhere_before_it():
    """Its own batch is half of the first run's."""
    half = written("oneflow-resnet50", start=1000.0)
    at = len(STYLES["oneflow-resnet50"].head)
    head = [line.replace("= 8", "= 4") for line in half[:at]]
    lines = [*ONEFLOW, FILLER, *head, FILLER, *half[at:]]
    first, second = measure("\n".join([*lines, ""]).encode(), log_format="oneflow-resnet50")
    assert second.global_batch * 2 == first.global_batch


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


def test_a_beginning_of_nothing_but_colours_hides_nothing(monkeypatch):
    monkeypatch.undo()
    colours = b"\x1b[m" * LONGEST_LINE
    lines = "".join(f"\n{line}" for line in ONEFLOW).encode()
    whole = measure_written("oneflow-resnet50", lines)
    assert outcome(measure_written("oneflow-resnet50", colours + lines)) == outcome(whole)
    assert whole.status == "ok"


@EACH_TIME
@given(content=st.text("ab\n\r", max_size=400))
def test_chunks_end_where_lines_end_and_hold_the_whole_log(content, monkeypatch):
    sizes = {"SMALLEST_CHUNK": 4, "LARGEST_CHUNK": 16, "LONGEST_LINE": 24}
    for name, size in sizes.items():
        monkeypatch.setattr(log_file, name, size)
    log = LogFile(io.BytesIO(content.encode()))
    chunks = list(log.chunks())
    assert b"".join(chunk for _, chunk in chunks) == content.encode()
    for start, chunk in chunks:
        assert log.part(start, start + len(chunk)) == chunk
        assert 0 < len(chunk) <= 24
        if start + len(chunk) < log.size:
            assert chunk.endswith((b"\n", b"\r")) or len(chunk) == 24


PACKED = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


class TestCompressed:
    CONTENT = encode(ONEFLOW)

    @pytest.mark.parametrize("kind", PACKED)
    def test_logs_are_unpacked(self, kind):
        found = measure_written("oneflow-resnet50", PACKED[kind](self.CONTENT))
        assert outcome(found) == outcome(measure_written("oneflow-resnet50", ONEFLOW))
        assert found.status == "ok"

    def test_zstd_is_read_or_says_what_to_install(self, monkeypatch):
        zstandard = pytest.importorskip("zstandard")
        packed = zstandard.compress(self.CONTENT[:500]) + zstandard.compress(self.CONTENT[500:])
        found = measure_written("oneflow-resnet50", packed)
        assert outcome(found) == outcome(measure_written("oneflow-resnet50", ONEFLOW))
        for module in ("zstandard", "compression.zstd"):
            monkeypatch.setitem(sys.modules, module, None)
        assert "run `pip install zstandard`" in measure_one(packed).reason

    @pytest.mark.parametrize("kind", PACKED)
    def test_damage_is_one_clear_line(self, kind):
        packed = PACKED[kind](self.CONTENT)
        for damaged in (packed[: len(packed) // 2], packed[:40] + b"????" + packed[44:]):
            reason = measure_one(damaged).reason
            assert re.match(r"it is no whole (gzip|bzip2|xz) file: ", reason)
            assert "\n" not in reason

    def test_growth_is_bounded(self, monkeypatch):
        monkeypatch.setattr(log_file, "FREE_GROWTH", 1 << 20)
        bomb = gzip.compress(bytes(1 << 24))
        assert "200 times its size" in measure_one(bomb).reason


class TestALastLineWithoutALineEnd:
    """Of AMD's submissions to MLPerf v5.1, some end so."""

    def test_is_whole_if_it_ends_as_an_object_does(self):
        whole = encode(written("mllog"))
        assert outcome(measure_written("mllog", whole[:-1])) == outcome(
            measure_written("mllog", whole)
        )
        assert measure_written("mllog", whole[:-1]).status == "ok"

    def test_may_be_cut_if_it_ends_with_a_number(self):
        whole = encode(ONEFLOW)
        assert measure_written("oneflow-resnet50", whole, ends=(20, 200)).status == "ok"
        assert measure_written("oneflow-resnet50", whole[:-1], ends=(20, 200)).status == "refused"
        assert measure_written("mllog", encode(written("mllog"))[:-12]).status == "refused"


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
        (r"\bone \d|\btwo \d", (b"one ", b"two ")),
        (rb"abc*d\.e", (b"d.e",)),
    ],
)
def test_only_what_every_match_holds_is_searched_for_first(pattern, literals):
    assert literals_in(pattern) == literals
