"""Every format: recognised, measured by both methods, and in whatever disguise logs come.

Whatever is lost, printed again, or printed by other ranks, a number is right or absent; see
test_edited_logs.
"""

import re
from functools import cache
from itertools import cycle, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reperf.logs.formats import formats
from reperf.measuring.measure import Measurement

from tests.unit.logs.asking import (
    check,
    encode,
    measure,
    measure_one,
    measure_written,
    runs_written,
)
from tests.unit.logs.written import (
    GLOBAL_BATCH,
    RATE,
    SAME_LINES,
    STEP,
    STYLES,
    TIMED,
    WORLD,
    iterations,
    rate,
    uneven,
    uneven_steps,
    written,
)

NAMES = sorted(formats())
APART = [name for name in TIMED if written(name) != written(name, start=0.004)]
"""Formats in whose lines a rank that is 4 ms behind writes other times."""
OF_CLOCKS = {formats()[name].clock: name for name in TIMED}.values()
"""A format of each clock, and one of durations."""
FROM_ZERO = [one for one in TIMED if (formats()[one].counts_from, STYLES[one].every) == (0, 1)]

each_timed_format = pytest.mark.parametrize("name", TIMED)
a_timed_format = st.sampled_from(TIMED)
seldom = settings(max_examples=settings.default.max_examples // 3)
"""Of what is dear: the weekly lane asks ten times as often."""


@cache
def whole(name: str) -> Measurement:
    """What the written log gives."""
    return measure_written(name, written(name))


def numbers(name: str, lines: list[str]) -> list[float]:
    found = (one.throughput for one in runs_written(name, lines))
    return [number for number in found if number is not None]


def parted(name: str, start: float = 0.0) -> tuple[list[str], list[str]]:
    """The lines before those of iterations, and the rest."""
    lines, head = written(name, start=start), len(STYLES[name].head)
    return lines[:head], lines[head:]


def test_every_format_has_a_written_log():
    assert sorted(STYLES) == NAMES
    assert len(APART) > len(TIMED) / 2
    assert (len(OF_CLOCKS), len(FROM_ZERO)) == (9, 15)


@each_timed_format
def test_the_window_rule_gives_samples_over_time(name):
    found = whole(name)
    expected = {"samples": 3200, "global_batch": GLOBAL_BATCH, "interval": STYLES[name].every}
    check(found, throughput=float(rate(name)), **expected)
    assert found.last - found.first == 100
    # The widest window spans all iterations behind the warm-up.
    assert found.widest in ((19, found.last_printed), (20, found.last_printed))


@each_timed_format
def test_a_format_is_found_from_the_content_and_a_window_takes_its_own_steps(name):
    ends = {iteration: seconds for iteration, seconds, _ in uneven_steps(name, digits=2)}
    printed, lines = [*ends], uneven(name, digits=2)
    for first, last in ((printed[2], printed[-1]), (printed[3], printed[-2])):
        found = measure_one(lines, ends=(first, last), facts=STYLES[name].facts)
        check(found, format=name, seconds=float(ends[last] - ends[first]))
        expected = GLOBAL_BATCH * (last - first) / found.seconds
        assert found.throughput == pytest.approx(expected, rel=1e-6)
        assert found.world_size in (None, WORLD)


@pytest.mark.parametrize("name", sorted({*NAMES} - {*TIMED}))
def test_a_log_without_times_is_refused(name):
    check(measure_written(name, written(name)), formats()[name].untimed)
    found = measure_one(written(name), facts=STYLES[name].facts)
    if name in SAME_LINES:
        check(found, "the log fits fleetx-bert and paddle1-bert: say which it is with --format")
    else:
        assert found.format == name


DISGUISES = {
    "crlf": lambda line: line + b"\r",
    "indented": lambda line: b"     " + line,
    "progress bar": lambda line: b" 10%|#    | 1/10 [00:00<00:01]\r 20%|##   | 2/10\r" + line,
    "mpirun": lambda line: b"[1,0]<stderr>:" + line,
    "mpirun with dates": lambda line: b"Wed Dec 16 08:03:32 2020[1,0]<stdout>:" + line,
    "colours": lambda line: b"\x1b[38;2;180;60;0m" + line + b"\x1b[0m",
    "srun": lambda line: b" 0: " + line,
    "srun and torchrun": lambda line: b"0: [default0]:" + line,
    "no text": lambda line: line + b"\n\xe3\x80\n\x00\xff\xfe",
}
BY_TURNS = [*zip(TIMED, cycle(DISGUISES), strict=False)]


def disguised(worn):
    """In the lane: each disguise on a format of each clock, and each format in one by turns."""
    dear = worn[0] not in OF_CLOCKS and worn not in BY_TURNS
    return pytest.param(*worn, marks=[pytest.mark.weekly] if dear else [])


@pytest.mark.parametrize(("name", "disguise"), [*map(disguised, product(TIMED, DISGUISES))])
def test_a_disguised_log_gives_the_same_number(name, disguise):
    # Launchers label the command line, too, but not all do.
    head, rest = (encode(lines) for lines in parted(name))
    worn = b"\n".join(map(DISGUISES[disguise], rest.splitlines()))
    assert measure_written(name, head + worn + b"\n").throughput == whole(name).throughput


@pytest.mark.parametrize("name", APART)
def test_unlabelled_lines_of_several_ranks_are_refused(name):
    head, mine = parted(name)
    lines = zip(mine, parted(name, start=0.004)[1], strict=True)
    results = runs_written(name, [*head, *(line for pair in lines for line in pair)])
    assert {one.status for one in results} == {"refused"}


@seldom
@given(a_timed_format, st.data())
def test_unlabelled_ranks_in_any_order_give_no_other_number(name, data):
    head, mine = parted(name)
    order = data.draw(st.lists(st.booleans(), min_size=len(mine), max_size=len(mine)))
    left, mixed = [[*mine], parted(name, start=0.004)[1]], []
    for second in order:
        mixed.append(left[second].pop(0) if left[second] else left[not second].pop(0))
    for number in numbers(name, [*head, *mixed, *left[0], *left[1]]):
        assert number == pytest.approx(whole(name).throughput, rel=0.001)


@seldom
@given(
    # Where other ranks evaluate at other times, nothing tells when a log of evaluations trains.
    a_timed_format.filter(lambda name: name != "mlperf-evaluations"),
    st.integers(2, 4),
    st.data(),
)
def test_labelled_ranks_in_any_order_do_not_matter(name, ranks, data):
    of_rank = [
        [f"[1,{rank}]<stdout>:{line}" for line in parted(name, start=rank / 512)[1]]
        for rank in range(ranks)
    ]
    order = [rank for rank, lines in enumerate(of_rank) for _ in lines]
    order = data.draw(st.permutations(order)) if len(order) < 150 else order[::-1]
    mixed = [of_rank[rank].pop(0) for rank in order]
    assert numbers(name, [*parted(name)[0], *mixed]) == [whole(name).throughput]


def test_ranks_are_told_apart_by_their_labels_also_those_of_four_launchers():
    head, mine = parted("mllog")
    late = parted("mllog", start=1 / 512)[1]
    of_rank = [
        [f"0: 0: 0: [default{rank}]:{line}" for line in lines]
        for rank, lines in enumerate((mine, late))
    ]
    mixed = [line for pair in zip(*of_rank[::-1], strict=True) for line in pair]
    assert numbers("mllog", [*head, *mixed]) == [whole("mllog").throughput]
    # Another rank's end is not that of the measured one.
    between = [*of_rank[0][:1], *of_rank[1], *of_rank[0][1:]]
    assert numbers("mllog", [*head, *between]) == [whole("mllog").throughput]


@seldom
@given(a_timed_format, st.data())
def test_a_window_that_is_proposed_is_measured_and_is_what_all_takes(name, data):
    """Whatever is missing or printed again."""
    lines = written(name)
    head = len(STYLES[name].head)
    gone = data.draw(st.sets(st.integers(head, len(lines) - 1), max_size=8))
    lines = [line for number, line in enumerate(lines) if number not in gone]
    for _ in range(data.draw(st.integers(0, 3))):
        lines.insert(at := data.draw(st.integers(0, len(lines) - 1)), lines[at])
    for run, one in enumerate(runs_written(name, lines)):
        taken = runs_written(name, lines, widest=True)[run]
        if one.widest is None or "is not known" in one.reason or "end of the run" in one.reason:
            assert taken.status == "refused"
            continue
        named = runs_written(name, lines, ends=one.widest)[run]
        check(named, throughput=float(rate(name)))
        assert (taken.first, taken.last, taken.throughput) == (*one.widest, named.throughput)


@given(st.sampled_from(NAMES), st.binary(max_size=400), st.data())
def test_no_bytes_crash_a_parser(name, noise, data):
    line = STYLES[name].line(20, 5.0, 128.0).encode()
    at = data.draw(st.integers(0, len(line)))
    pieces = [line[:at], noise, line[at:], b"\n", line, data.draw(st.sampled_from([b"", b"\n"]))]
    content = b"".join(data.draw(st.permutations(pieces)))
    for how in ({"log_format": name}, {"log_format": name, "method": "published"}, {}):
        results = measure(content, facts=STYLES[name].facts, **how)
        assert {one.status for one in results} <= {"ok", "refused"}
        assert not any("\n" in one.reason for one in results)


@each_timed_format
def test_runs_in_one_file_are_results_of_their_own_and_a_short_one_is_refused(name):
    broken_off = written(name, last=100)[: -len(STYLES[name].tail) or None]
    rest = [line for start in (3600.0, 7200.0) for line in written(name, start=start)]
    short, *two = runs_written(name, broken_off + rest)
    check(short, "too short: it ends at iteration")
    assert [one.status for one in two] == ["ok", "ok"]


@pytest.mark.parametrize("name", [one for one in TIMED if not STYLES[one].says_batch])
def test_without_a_global_batch_there_is_no_number(name):
    reason = measure_written(name, parted(name)[1], facts=()).reason
    unknown = "the global batch is not known: neither log, record nor path says it; allowed: "
    assert reason.startswith(unknown)
    assert ", or --global-batch" in reason


@each_timed_format
def test_a_window_end_that_is_not_printed_is_named(name):
    check(measure_written(name, written(name, lost=(119, 120))), "..is not in the log: printed are")


@pytest.mark.parametrize("name", FROM_ZERO)
def test_a_log_that_counts_from_0_has_another_window_of_a_hundred(name):
    check(measure_written(name, written(name, lost=(120,))), first=19, last=119)


@pytest.mark.parametrize("name", [one for one in NAMES if "{TOTAL}" in formats()[one].pattern])
def test_no_iteration_is_beyond_the_total_that_its_line_prints(name):
    lines = written(name)
    matches = formats()[name].line.finditer("\n".join(lines).encode())
    [total] = {match["total"].decode() for match in matches if match["total"]}
    fewer = [re.sub(rf"(?<=/)( *){total}\b", r"\g<1>100", line) for line in lines]
    reason = measure_written(name, fewer).reason
    assert re.fullmatch(r"iteration 1\d\d is printed, of 100 in all", reason)


@pytest.mark.parametrize(
    "name",
    [
        "ngc-mxnet-ssd",
        "ngc-pytorch-rnnt",
        "ngc-tensorflow1-bert",
        "paddle2-resnet50",
        "tensorflow2-resnet50",
    ],
)
def test_printed_speeds_of_another_batch_are_refused(name):
    """Twice the batch, by one who should know: only formats that print speeds can contradict."""
    told = dict(STYLES[name].facts)
    twice = (("batch_size", 2 * told.pop("batch_size")), *told.items())
    reason = measure_written(name, written(name), facts=twice).reason
    assert "the printed speeds mean 32 " in reason
    assert "the global batch is 64 under a world size of 4" in reason


@each_timed_format
def test_a_clock_that_stands_still_is_refused(name):
    style = STYLES[name]
    lines = "\n".join(style.line(i, 3.0, rate(name)) for i in iterations(name))
    lines = re.sub(r"\b0\.250*\b|\b2\.50+|\b2?500?\.0+", "0.000", lines).split("\n")
    assert measure_written(name, [*style.head, *lines, *style.tail]).status == "refused"


@pytest.mark.parametrize("name", ["tensorflow2-bert", "ngc-pytorch-bert", "oneflow-wide-deep"])
def test_a_clock_that_jumps_back_is_refused(name):
    lines = written(name)
    at = len(STYLES[name].head) + 1 + iterations(name).index(60)
    lines[at] = STYLES[name].line(60, 60 * STEP - 30.0, RATE)
    check(measure_written(name, lines), "..time steps back by")


def test_a_clock_without_a_date_passes_midnight():
    late = 9.5 * 3600 + 26.0  # 24 s before midnight, in the window's middle
    lines = [STYLES["tensorflow2-bert"].line(i, late + i * STEP, RATE) for i in range(1, 131)]
    assert " 00:00:" in " ".join(lines)
    check(measure_written("tensorflow2-bert", lines), throughput=RATE)


def test_a_clock_that_is_too_coarse_is_refused():
    found = measure_written("paddle2-resnet50", written("paddle2-resnet50"), ends=(20, 40))
    check(found, "the log's times are printed in steps of 1 s, too coarse for a window of 80 s")


def test_lines_that_lost_their_time_stamp_are_no_ends_of_the_window():
    lines = written("oneflow-resnet50")
    lines[7] = lines[7].rsplit(" ", 1)[0]
    check(measure_written("oneflow-resnet50", lines))
    lines[5] = lines[5].rsplit(" ", 1)[0]
    check(measure_written("oneflow-resnet50", lines), "..is not in the log")
    again = [line.rsplit(" ", 1)[0] for line in lines]
    assert {one.status for one in measure(lines + again)} == {"refused"}


@pytest.mark.parametrize(
    "name", ["pytorch-resnet50", "paddle1-resnet50", "mxnet-bert", "maxtext", "litgpt", "nanogpt"]
)
def test_single_iterations_make_no_window(name):
    """Where every third line is printed, and each tells the time of its own iteration alone."""
    head, lines = parted(name)
    found = measure_written(name, [*head, *lines[1::3]], widest=True)
    assert (found.status, found.widest) == ("refused", None)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("hugectr-wide-deep", "Time(10 iters)", "Time(00 iters)"),
        ("hugectr-wide-deep", ": 2.500000s", ": 0.000000s"),
        ("mxnet-bert", "latency=250.0", "latency=0.04"),
        ("pytorch-resnet50", "Time  0.250", "Time 10.000"),
        ("mindspore-bert", "2500.000 ms", "0.000 ms"),
        ("paddle1-resnet50", "elapse 0.2500", "elapse 0.0000"),
    ],
)
def test_lines_that_would_divide_by_zero_are_refused_by_the_published_method(name, old, new):
    style = STYLES[name]
    text = "\n".join(style.line(style.first + n, 3.0 + n, 128.0) for n in range(800))
    assert old in text
    lines = [*style.head, *text.replace(old, new).split("\n")]
    assert measure_written(name, lines, method="published").status == "refused"
