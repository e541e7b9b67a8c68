"""Every format: recognised, measured by both methods, and in whatever disguise logs come."""

import re
from itertools import cycle, product

import pytest
from reperf.logs.formats import formats

from tests.unit.logs.asking import encode, measure, measure_one, measure_written, runs_written
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

each_format = pytest.mark.parametrize("name", NAMES)
each_timed_format = pytest.mark.parametrize("name", TIMED)


def test_every_format_has_a_written_log():
    assert sorted(STYLES) == NAMES
    assert len(APART) > len(TIMED) / 2
    assert (len(OF_CLOCKS), len(FROM_ZERO)) == (9, 15)


@each_format
def test_a_format_is_found_from_the_content(name):
    measured = measure_one(written(name), facts=STYLES[name].facts)
    if name in SAME_LINES:
        assert measured.reason == (
            "the log fits fleetx-bert and paddle1-bert: say which it is with --format"
        )
    else:
        assert measured.format == name


@each_timed_format
def test_the_window_rule_gives_samples_over_time(name):
    measured = measure_written(name, written(name))
    assert measured.reason == ""
    assert measured.throughput == pytest.approx(rate(name), rel=1e-6)
    assert measured.samples == 3200
    assert (measured.global_batch, measured.last - measured.first) == (32, 100)


@each_timed_format
def test_a_window_takes_the_seconds_of_its_own_steps(name):
    ends = {iteration: seconds for iteration, seconds, _ in uneven_steps(name, digits=2)}
    printed, lines = [*ends], uneven(name, digits=2)
    for first, last in ((printed[2], printed[-1]), (printed[3], printed[-2])):
        measured = measure_one(lines, ends=(first, last), facts=STYLES[name].facts)
        assert (measured.format, measured.reason) == (name, "")
        assert measured.seconds == pytest.approx(ends[last] - ends[first], rel=1e-6)
        expected = GLOBAL_BATCH * (last - first) / measured.seconds
        assert measured.throughput == pytest.approx(expected, rel=1e-6)
        assert measured.world_size in (None, WORLD)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(TIMED)))
def test_a_log_without_times_is_refused(name):
    assert measure_written(name, written(name)).reason == formats()[name].untimed


DISGUISES = {
    "crlf": lambda line: line + "\r",
    "indented": lambda line: "     " + line,
    "progress bar": lambda line: f" 10%|#    | 1/10 [00:00<00:01]\r 20%|##   | 2/10\r{line}",
    "mpirun": lambda line: "[1,0]<stderr>:" + line,
    "mpirun with dates": lambda line: "Wed Dec 16 08:03:32 2020[1,0]<stdout>:" + line,
    "colours": lambda line: f"\x1b[38;2;180;60;0m{line}\x1b[0m",
    "srun": lambda line: " 0: " + line,
    "srun and torchrun": lambda line: "0: [default0]:" + line,
}
BY_TURNS = [*zip(TIMED, cycle(DISGUISES), strict=False)]


def disguised(worn):
    """In the lane: each disguise on a format of each clock, and each format in one by turns."""
    dear = worn[0] not in OF_CLOCKS and worn not in BY_TURNS
    return pytest.param(*worn, marks=[pytest.mark.weekly] if dear else [])


@pytest.mark.parametrize(("name", "disguise"), [*map(disguised, product(TIMED, DISGUISES))])
def test_a_disguised_log_gives_the_same_number(name, disguise):
    plain = written(name)
    skipped = len(STYLES[name].head)  # launchers label the command line, too, but not all do
    worn = plain[:skipped] + [DISGUISES[disguise](line) for line in plain[skipped:]]
    assert measure_written(name, worn).throughput == measure_written(name, plain).throughput


@each_timed_format
def test_bytes_that_are_no_text_between_the_lines_do_not_matter(name):
    plain = encode(written(name))
    noisy = plain.replace(b"\n", b"\n\xe3\x80\n\x00\xff\xfe\n")
    assert measure_written(name, noisy).throughput == measure_written(name, plain).throughput


@pytest.mark.parametrize("name", APART)
def test_unlabelled_lines_of_several_ranks_are_refused(name):
    mine, other = written(name), written(name, start=0.004)
    begin = len(STYLES[name].head) + 1
    mixed = [line for pair in zip(mine[begin:], other[begin:], strict=True) for line in pair]
    results = runs_written(name, mine[:begin] + mixed)
    assert {one.status for one in results} == {"refused"}


@each_timed_format
def test_two_runs_in_one_file_are_two_results_and_a_short_one_is_refused(name):
    again = written(name, start=3600.0)
    assert [one.status for one in runs_written(name, written(name) + again)] == ["ok", "ok"]
    broken_off = written(name, last=100)[: -len(STYLES[name].tail) or None]
    short, whole = runs_written(name, broken_off + again)
    assert (short.status, whole.status) == ("refused", "ok")
    assert "too short: it ends at iteration" in short.reason


@pytest.mark.parametrize("name", [one for one in TIMED if not STYLES[one].says_batch])
def test_without_a_global_batch_there_is_no_number(name):
    lines = written(name)[len(STYLES[name].head) :]
    reason = measure_written(name, lines, facts=()).reason
    unknown = "the global batch is not known: neither log, record nor path says it; allowed: "
    assert reason.startswith(unknown)
    assert ", or --global-batch" in reason


def without(name: str, *lost: int) -> list[str]:
    """A written log that lacks the lines of some iterations."""
    style = STYLES[name]
    lines = (
        style.line(i, 3 + i * style.step, rate(name)) for i in iterations(name) if i not in lost
    )
    return [*style.head, "some other line", *"\n".join(lines).split("\n"), *style.tail]


@each_timed_format
def test_a_window_end_that_is_not_printed_is_named(name):
    reason = measure_written(name, without(name, 119, 120)).reason
    assert "is not in the log: printed are" in reason


@pytest.mark.parametrize("name", FROM_ZERO)
def test_a_log_that_counts_from_0_has_another_window_of_a_hundred(name):
    measured = measure_written(name, without(name, 120))
    assert (measured.status, measured.first, measured.last) == ("ok", 19, 119)


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


def test_lines_that_lost_their_time_stamp_are_no_ends_of_the_window():
    lines = written("oneflow-resnet50")
    lines[7] = lines[7].rsplit(" ", 1)[0]
    assert measure_written("oneflow-resnet50", lines).status == "ok"
    lines[5] = lines[5].rsplit(" ", 1)[0]
    assert "is not in the log" in measure_written("oneflow-resnet50", lines).reason
    again = [line.rsplit(" ", 1)[0] for line in lines]
    assert {one.status for one in measure(lines + again)} == {"refused"}


def test_a_clock_without_a_date_passes_midnight():
    style = STYLES["tensorflow2-bert"]
    late = 9.5 * 3600 + 26.0  # 24 s before midnight, in the window's middle
    lines = [style.line(i, late + i * STEP, RATE) for i in range(1, 131)]
    assert " 00:00:" in " ".join(lines)
    assert measure_written("tensorflow2-bert", lines).throughput == pytest.approx(RATE)


@pytest.mark.parametrize("name", ["tensorflow2-bert", "ngc-pytorch-bert", "oneflow-wide-deep"])
def test_a_clock_that_jumps_back_is_refused(name):
    lines = written(name)
    at = len(STYLES[name].head) + 1 + iterations(name).index(60)
    lines[at] = STYLES[name].line(60, 60 * STEP - 30.0, RATE)
    assert "time steps back by" in measure_written(name, lines).reason


def test_a_clock_that_is_too_coarse_is_refused():
    measured = measure_written("paddle2-resnet50", written("paddle2-resnet50"), ends=(20, 40))
    coarse = "the log's times are printed in steps of 1 s, too coarse for a window of 80 s"
    assert measured.reason == coarse


@each_timed_format
def test_a_clock_that_stands_still_is_refused(name):
    style = STYLES[name]
    lines = "\n".join(style.line(i, 3.0, rate(name)) for i in iterations(name))
    lines = re.sub(r"\b0\.250*\b|\b2\.50+|\b2?500?\.0+", "0.000", lines).split("\n")
    assert measure_written(name, [*style.head, *lines, *style.tail]).status == "refused"


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


def test_gradient_accumulation_makes_steps_larger():
    lines = [line.replace("steps=1", "steps=4") for line in written("ngc-pytorch-bert")]
    measured = measure_written("ngc-pytorch-bert", lines)
    assert measured.global_batch == 128
    assert measured.throughput == pytest.approx(4 * RATE)


def test_what_mlperf_counts_is_found_by_the_printed_throughput():
    counted = (re.compile(r'"step_num": (\d+)'), lambda i: f'"epoch_num": {int(i[1]) * 32}')
    lines = [re.sub(*counted, line) for line in written("mlperf")]
    measured = measure_written("mlperf", lines, ends=(640, 3840))
    assert measured.samples == 3200
    assert measured.throughput == pytest.approx(RATE)
