"""Every format: recognised, measured by both methods, and in whatever disguise logs come."""

import re

import pytest
from reperf.logs.formats import formats

from tests.unit.logs.asking import measure, measure_one, measure_written
from tests.unit.logs.written import RATE, SAME_LINES, STEP, STYLES, iterations, rate, written

NAMES = sorted(formats())
WITH_TIME = [name for name in NAMES if STYLES[name].has_time]


def test_every_format_has_a_written_log():
    assert sorted(STYLES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_format_is_found_from_the_content(name):
    measured = measure_one(written(name), facts=STYLES[name].facts)
    if name in SAME_LINES:
        assert measured.reason == (
            "the log fits fleetx-bert and paddle1-bert: say which it is with --format"
        )
    else:
        assert measured.format == name


@pytest.mark.parametrize("name", WITH_TIME)
def test_the_window_rule_gives_samples_over_time(name):
    measured = measure_written(name, written(name))
    assert measured.reason == ""
    assert measured.throughput == pytest.approx(rate(name), rel=1e-6)
    assert measured.samples == 3200
    assert (measured.global_batch, measured.last - measured.first) == (32, 100)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(WITH_TIME)))
def test_a_log_without_times_is_refused(name):
    measured = measure_written(name, written(name))
    assert measured.reason == formats()[name].untimed


@pytest.mark.parametrize("name", WITH_TIME)
def test_a_window_of_ones_own(name):
    ends = (STYLES[name].first + 20, STYLES[name].first + 60)
    measured = measure_written(name, written(name, ends[1]), ends=ends)
    assert measured.reason == ""
    assert (measured.first, measured.last, measured.samples) == (*ends, 40 * 32)


DISGUISES = {
    "crlf": lambda line: line + "\r",
    "indented": lambda line: "     " + line,
    "progress bar": lambda line: f" 10%|#    | 1/10 [00:00<00:01]\r 20%|##   | 2/10\r{line}",
    "mpirun": lambda line: "[1,0]<stderr>:" + line,
    "mpirun with dates": lambda line: "Wed Dec 16 08:03:32 2020[1,0]<stdout>:" + line,
    "srun": lambda line: " 0: " + line,
    "srun and torchrun": lambda line: "0: [default0]:" + line,
}


@pytest.mark.parametrize("name", WITH_TIME)
@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_disguised_log_gives_the_same_number(name, disguise):
    plain = written(name)
    skipped = len(STYLES[name].head)  # launchers label the command line, too, but not all do
    worn = plain[:skipped] + [DISGUISES[disguise](line) for line in plain[skipped:]]
    assert measure_written(name, worn).throughput == measure_written(name, plain).throughput


@pytest.mark.parametrize("name", WITH_TIME)
def test_bytes_that_are_no_text_between_the_lines_do_not_matter(name):
    lines = written(name)
    content = b"\xe3\x80\n\x00\xff\xfe\n".join(f"{line}\n".encode() for line in lines[-250:])
    content = "".join(f"{line}\n" for line in lines[:-250]).encode() + content
    if name.startswith("mindspore"):
        content = content.replace(b"\xe3\x80\n", b"").replace(b"\x00\xff\xfe\n", b"")
    assert measure_written(name, content).throughput == measure_written(name, lines).throughput


# Where other ranks evaluate at other times, no stretch of a log of evaluations is known to train.
@pytest.mark.parametrize("name", [name for name in WITH_TIME if name != "mlperf-evaluations"])
def test_labelled_lines_of_other_ranks_do_not_matter(name):
    mine = [f"[1,0]<stdout>:{line}" for line in written(name)]
    late = [f"[1,3]<stdout>:{line}" for line in written(name, start=0.004)]
    mixed = [line for pair in zip(late, mine, strict=True) for line in pair]
    facts = [*STYLES[name].head, *mixed]
    assert measure_written(name, facts).throughput == measure_written(name, mine).throughput


@pytest.mark.parametrize("name", WITH_TIME)
def test_unlabelled_lines_of_several_ranks_are_refused(name):
    mine, other = written(name), written(name, start=0.004)
    step = 2 if name.startswith("mindspore") else 1
    begin = len(STYLES[name].head) + 1
    mixed = mine[:begin]
    for at in range(begin, len(mine), step):
        mixed += mine[at : at + step] + other[at : at + step]
    results = measure(
        "".join(f"{line}\n" for line in mixed).encode(),
        log_format=name,
        facts=STYLES[name].facts,
    )
    if mine == other:  # without a time in its lines, another rank's are the same ones again
        return
    assert {one.status for one in results} == {"refused"}


@pytest.mark.parametrize("name", WITH_TIME)
def test_two_runs_in_one_file_are_two_results(name):
    lines = written(name) + written(name, start=3600.0)
    results = measure(
        "".join(f"{line}\n" for line in lines).encode(), log_format=name, facts=STYLES[name].facts
    )
    assert [one.status for one in results] == ["ok", "ok"]


@pytest.mark.parametrize("name", WITH_TIME)
def test_a_restart_inside_a_file_does_not_lengthen_the_first_run(name):
    broken_off = written(name, last=100)[: -len(STYLES[name].tail) or None]
    lines = broken_off + written(name, start=3600.0)
    results = measure(
        "".join(f"{line}\n" for line in lines).encode(), log_format=name, facts=STYLES[name].facts
    )
    assert [one.status for one in results] == ["refused", "ok"]
    assert "too short" in results[0].reason


@pytest.mark.parametrize("name", WITH_TIME)
def test_a_run_that_is_too_short_is_refused(name):
    measured = measure_written(name, written(name, last=100))
    assert "too short: it ends at iteration" in measured.reason


@pytest.mark.parametrize("name", [one for one in WITH_TIME if not STYLES[one].says_batch])
def test_without_a_global_batch_there_is_no_number(name):
    lines = written(name)[len(STYLES[name].head) :]
    measured = measure_written(name, lines, facts=())
    unknown = "the global batch is not known: neither log, record nor path says it; allowed: "
    assert measured.reason.startswith(unknown)
    assert ", or --global-batch" in measured.reason


@pytest.mark.parametrize("name", WITH_TIME)
def test_a_window_end_that_is_not_printed_is_named(name):
    lines = written(name)
    lines_each = 1 + STYLES[name].line(1, 1.0, 1.0).count("\n")
    before = list(iterations(name)).index(120 if 120 in iterations(name) else 119)
    at = len(STYLES[name].head) + 1 + lines_each * before
    del lines[at : at + lines_each]
    measured = measure_written(name, lines)
    if measured.status == "refused":
        assert "is not in the log: printed are" in measured.reason
    else:  # a log that counts from 0 has another window of a hundred
        assert (measured.first, measured.last) == (19, 119)


@pytest.mark.parametrize("name", NAMES)
def test_printed_speeds_of_another_batch_are_refused(name):
    """Twice the batch, by one who should know: only formats that print speeds can contradict."""
    doubled = tuple((fact, 2 * value) for fact, value in STYLES[name].facts if fact == "batch_size")
    if not doubled or "rate" not in formats()[name].line.groupindex or name in SAME_LINES:
        return
    rest = tuple(fact for fact in STYLES[name].facts if fact[0] != "batch_size")
    measured = measure_written(name, written(name), facts=doubled + rest)
    assert "the printed speeds mean 32 " in measured.reason
    assert "the global batch is 64 under a world size of 4" in measured.reason


def test_lines_that_lost_their_time_stamp_are_no_ends_of_the_window():
    lines = written("oneflow-resnet50")
    lines[7] = lines[7].rsplit(" ", 1)[0]
    assert measure_written("oneflow-resnet50", lines).status == "ok"
    lines[5] = lines[5].rsplit(" ", 1)[0]
    assert "is not in the log" in measure_written("oneflow-resnet50", lines).reason
    again = [line.rsplit(" ", 1)[0] for line in lines]
    results = measure("".join(f"{line}\n" for line in lines + again).encode())
    assert {one.status for one in results} == {"refused"}


def test_a_clock_without_a_date_passes_midnight():
    style = STYLES["tensorflow2-bert"]
    late = 9.5 * 3600 + 26.0  # 24 s before midnight, in the window's middle
    lines = [style.line(i, late + i * STEP, RATE) for i in range(1, 131)]
    assert " 00:00:" in " ".join(lines)
    measured = measure_written("tensorflow2-bert", lines)
    assert measured.throughput == pytest.approx(RATE)


@pytest.mark.parametrize("name", ["tensorflow2-bert", "ngc-pytorch-bert", "oneflow-wide-deep"])
def test_a_clock_that_jumps_back_is_refused(name):
    lines = written(name)
    style = STYLES[name]
    at = len(style.head) + 1 + list(iterations(name)).index(60)
    lines[at] = style.line(60, 60 * STEP - 30.0, RATE)
    measured = measure_written(name, lines)
    assert "time steps back by" in measured.reason


def test_a_clock_that_is_too_coarse_is_refused():
    lines = written("paddle2-resnet50")
    measured = measure_written("paddle2-resnet50", lines, ends=(20, 40))
    assert (
        measured.reason
        == "the log's times are printed in steps of 1 s, too coarse for a window of 80 s"
    )


@pytest.mark.parametrize("name", WITH_TIME)
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
    lines = text.replace(old, new).split("\n")
    assert new in "".join(lines)
    measured = measure_written(name, [*style.head, *lines], method="published")
    assert measured.status == "refused"


def test_gradient_accumulation_makes_steps_larger():
    head = STYLES["ngc-pytorch-bert"].head
    lines = [line.replace("steps=1", "steps=4") for line in written("ngc-pytorch-bert")]
    assert lines[: len(head)] != list(head)
    measured = measure_written("ngc-pytorch-bert", lines)
    assert measured.global_batch == 128
    assert measured.throughput == pytest.approx(4 * RATE)


def test_what_mlperf_counts_is_found_by_the_printed_throughput():
    samples = [
        line.replace(f'"step_num": {i}', f'"epoch_num": {i * 32}')
        for line, i in zip(written("mlperf")[2:-1], iterations("mlperf"), strict=True)
    ]
    lines = [*written("mlperf")[:2], *samples, *STYLES["mlperf"].tail]
    measured = measure_written("mlperf", lines, ends=(640, 3840))
    assert measured.samples == 3200
    assert measured.throughput == pytest.approx(RATE)


def test_an_mlperf_run_that_did_not_succeed_is_refused():
    lines = [line.replace("success", "aborted") for line in written("mlperf")]
    reason = "the log says that the run stopped as aborted, without success"
    assert measure_written("mlperf", lines).reason == reason
