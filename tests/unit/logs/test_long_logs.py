"""What matters is found wherever it stands: behind gigabytes of other text, or before them."""

import bz2
import gzip
import io
import lzma
import sys
from random import Random

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

from tests.unit.logs.asking import check, encode, measure, measure_one, measure_written
from tests.unit.logs.mlperf_lines import ABORTED, evaluation
from tests.unit.logs.written import STYLES, TIMED, written

OTHER = "other text, in lines that are none of a format's\n"
FILLER = OTHER * 80
START, STOP = evaluation(1600180167000, 1600180167020)
ONEFLOW = written("oneflow-resnet50")


@pytest.fixture(autouse=True)
def short_gaps(monkeypatch):
    """Blocks and gaps so small that the filler is long."""
    monkeypatch.setattr("reperf.logs.recognise.BEGINNING", 1 << 10)
    monkeypatch.setattr("reperf.logs.log_file.SMALLEST_CHUNK", 1 << 9)


def outcome(one: Measurement) -> tuple:
    return one.status, one.reason, one.throughput, one.global_batch, one.sources


def oneflow(log: list[str] | bytes) -> tuple:
    return outcome(measure_written("oneflow-resnet50", log))


WHOLE = oneflow(ONEFLOW)


@pytest.mark.parametrize("name", TIMED)
@pytest.mark.parametrize(
    "turn", [0, *(pytest.param(n, marks=pytest.mark.weekly) for n in (1, 2, 3))]
)
def test_other_text_changes_nothing_wherever_it_stands(name, turn):
    lines, chance = written(name), Random(f"{name} {turn}")
    whole = outcome(measure_written(name, lines))
    for _ in range(3):
        lines.insert(chance.randint(0, len(lines)), FILLER)
    assert outcome(measure_written(name, lines)) == whole


def among(*between: str, name: str = "oneflow-resnet50") -> Measurement:
    lines, at = written(name), len(STYLES[name].head) + 3
    return measure_written(name, [*lines[:at], *between, *lines[at:]])


class TestEvaluations:
    @pytest.mark.parametrize(
        "between", [(START, FILLER, STOP), (FILLER, START, FILLER, STOP, FILLER)]
    )
    def test_take_their_time_wherever_they_stand(self, between):
        assert outcome(among(*between)) == outcome(among(START, STOP))
        check(among(*between), evaluations=1, evaluated=0.02)

    @pytest.mark.parametrize(
        ("name", "between"),
        [
            ("oneflow-resnet50", (FILLER, START, FILLER)),  # without an end
            ("oneflow-resnet50", (FILLER, STOP)),
            (
                "megatron",
                (FILLER, " validation loss at iteration 60 | lm loss value: 6.9 |", FILLER),
            ),
            ("mllog", (FILLER,)),  # a gap that is not read whole may hold one
        ],
    )
    def test_whose_time_is_not_known_are_heard_and_refused(self, name, between, monkeypatch):
        if between == (FILLER,):
            monkeypatch.setattr("reperf.logs.logged_runs.MOST_TEXT", 1 << 11)
            check(measure_written("mllog", [*written("mllog"), FILLER]))
        check(among(*between, name=name), "evaluations lie in the window: the first between ")


@pytest.mark.parametrize("behind", ["", "RESULT,bert,1", FILLER, "the last record again"])
@pytest.mark.parametrize("name", ["mllog", "mlperf"])
@pytest.mark.parametrize(
    ("stopped", "reason"),
    [("success", ""), ("aborted", ABORTED), (None, "the end of the run is not in the log")],
)
def test_the_end_of_a_run_is_found_before_any_amount_of_text(name, stopped, reason, behind):
    lines = written(name)
    end = lines.pop()
    ends = [end.replace("success", stopped)] if stopped else []
    behind = lines[-1] if "record" in behind else behind
    check(measure_written(name, [*lines, *ends, behind]), reason)


def test_facts_of_a_second_run_stand_anywhere_before_it():
    """Its own batch is half of the first run's."""
    half, at = written("oneflow-resnet50", start=1000.0), len(STYLES["oneflow-resnet50"].head)
    head = [line.replace("= 8", "= 4") for line in half[:at]]
    lines = [*ONEFLOW, FILLER, *head, FILLER, *half[at:]]
    first, second = measure(lines, log_format="oneflow-resnet50")
    assert second.global_batch * 2 == first.global_batch


@pytest.mark.parametrize("ranks", [1, 32])
@pytest.mark.parametrize("name", ["mllog", "oneflow-resnet50"])
def test_what_is_skipped_of_a_long_log_changes_nothing(name, ranks, monkeypatch):
    """The last line of the measured rank is found among those of the others."""
    monkeypatch.undo()
    lines = written(name, 3_000)
    every = [f"[1,{rank}]<stdout>:{line}" for line in lines for rank in range(ranks)]
    whole = measure_written(name, lines[:200] + lines[-1:])
    expected = {"throughput": whole.throughput, "samples": whole.samples, "last_printed": 3_000}
    check(measure_written(name, every), **expected)


def test_a_later_epoch_changes_nothing_of_the_first():
    first = written("pytorch-resnet50")
    second = [line.replace("[0][", "[1][") for line in first]
    whole = measure_written("pytorch-resnet50", first)
    assert outcome(measure_written("pytorch-resnet50", first + second)) == outcome(whole)
    check(whole, last_printed=200)


@pytest.mark.parametrize("at", [500, 2_000, 2_990])
def test_another_run_in_what_could_be_skipped_is_measured(at):
    lines = written("oneflow-resnet50", 3_000)[:at] + written("oneflow-resnet50", start=1e6)
    found = measure(lines, log_format="oneflow-resnet50")
    assert [(one.status, one.run) for one in found] == [("ok", 1), ("ok", 2)]


def test_a_line_that_is_too_long_is_no_record_and_hides_none():
    long = "x" * (3 * LONGEST_LINE)
    assert oneflow([long, *ONEFLOW[:6], long, *ONEFLOW[6:]]) == WHOLE
    assert measure_one([long]).reason == NO_FORMAT


def test_a_beginning_of_nothing_but_colours_hides_nothing(monkeypatch):
    monkeypatch.undo()
    assert oneflow(b"\x1b[m" * LONGEST_LINE + b"\n" + encode(ONEFLOW)) == WHOLE


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # all examples patch the same
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


@pytest.mark.parametrize(
    ("name", "pack"), [("gzip", gzip.compress), ("bzip2", bz2.compress), ("xz", lzma.compress)]
)
def test_compressed_logs_are_unpacked_and_damage_is_one_clear_line(name, pack):
    packed = pack(encode(ONEFLOW))
    assert oneflow(packed) == WHOLE
    for damaged in (packed[: len(packed) // 2], packed[:40] + b"????" + packed[44:]):
        found = measure_one(damaged)
        check(found, f"it is no whole {name} file: ")
        assert "\n" not in found.reason


def test_zstd_is_read_or_says_what_to_install(monkeypatch):
    zstandard = pytest.importorskip("zstandard")
    log = encode(ONEFLOW)
    packed = zstandard.compress(log[:500]) + zstandard.compress(log[500:])
    assert oneflow(packed) == WHOLE
    monkeypatch.setitem(sys.modules, "zstandard", None)
    check(measure_one(packed), "..run `pip install zstandard`")


def test_the_growth_of_a_compressed_log_is_bounded(monkeypatch):
    monkeypatch.setattr(log_file, "FREE_GROWTH", 1 << 20)
    check(measure_one(gzip.compress(bytes(1 << 24))), "..200 times its size")


def test_a_last_line_without_a_line_end_is_whole_if_it_ends_as_an_object_does():
    """Of AMD's submissions to MLPerf v5.1, some end so; one that ends with a number may be cut."""
    mllog, log = encode(written("mllog")), encode(ONEFLOW)
    whole = measure_written("mllog", mllog)
    check(whole)
    assert outcome(measure_written("mllog", mllog[:-1])) == outcome(whole)
    assert measure_written("mllog", mllog[:-12]).status == "refused"
    check(measure_written("oneflow-resnet50", log, ends=(20, 200)))
    assert measure_written("oneflow-resnet50", log[:-1], ends=(20, 200)).status == "refused"


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
