"""The published methods, each against its extractor's arithmetic done by hand on uneven logs."""

import statistics
from collections.abc import Iterable

import numpy as np
import pytest

from tests.unit.logs.asking import measure_written
from tests.unit.logs.written import STEP, STYLES, WORLD

RANDOM = np.random.default_rng(1)
SECONDS = STEP * RANDOM.uniform(0.8, 1.2, 700)  # how long each iteration takes
ENDS = np.cumsum(SECONDS).tolist()
SPEEDS = (32 / SECONDS).tolist()
USUAL = range(20, 120)


def uneven(name: str, printed: Iterable[int]) -> list[str]:
    """A log whose iterations differ: number n ends at ENDS[n] and goes at SPEEDS[n]."""
    style = STYLES[name]
    return [*style.head, *(style.line(n, ENDS[n], SPEEDS[n]) for n in printed), *style.tail]


def taking(name: str, seconds: Iterable[float], numbers: Iterable[int]) -> list[str]:
    """A log whose iterations have these numbers, and take so long each."""
    style = STYLES[name]
    pairs = zip(numbers, seconds, strict=True)
    return [*style.head, *(style.line(n, 0, 32 / took) for n, took in pairs)]


def published(name: str, lines: list[str]) -> float:
    measured = measure_written(name, lines, method="published")
    assert measured.reason == ""
    return measured.throughput


def mean(values: Iterable[float]) -> float:
    """As numpy takes it, to two digits."""
    return round(float(np.mean([*values])), 2)


@pytest.mark.parametrize(
    ("name", "printed", "ends"),
    [
        ("oneflow-resnet50", range(20, 201, 20), (20, 120)),
        ("oneflow-bert", range(19, 201, 20), (19, 119)),
        # These count lines, the first two those behind iteration 5.
        ("ngc-pytorch-resnet50", range(1, 151), (25, 125)),
        ("ngc-pytorch-bert", range(1, 151), (25, 125)),
        ("tensorflow2-bert", range(1, 121), (20, 120)),
        ("ngc-tensorflow1-bert", range(10, 131, 10), (20, 120)),
    ],
)
def test_two_time_stamps_tell_the_time_of_a_hundred_iterations(name, printed, ends):
    start, stop = (round(ENDS[n], 6) for n in ends)
    assert published(name, uneven(name, printed)) == round(32 / ((stop - start) / 100), 2)


def test_ngc_mxnet_counts_the_lines_of_all_ranks():
    lines = [line for line in uneven("ngc-mxnet-resnet50", range(131)) for _ in range(WORLD)]
    start, stop = (round(ENDS[n] * 1e6) // 1000 for n in (19, 119))
    assert published("ngc-mxnet-resnet50", lines) == round(32 / ((stop - start) / 1000 / 100), 2)


@pytest.mark.parametrize(
    ("name", "printed", "counted"),
    [
        ("ngc-tensorflow1-resnet50", range(20, 131), USUAL),
        ("mxnet-resnet50", range(120), USUAL),
        ("tensorflow2-resnet50", range(100, 601, 100), range(200, 601, 100)),
    ],
)
def test_the_printed_speeds_are_averaged(name, printed, counted):
    expected = mean(round(SPEEDS[n], 2) for n in counted)
    assert published(name, uneven(name, printed)) == expected


@pytest.mark.parametrize(
    ("name", "printed", "wanted"),
    [
        ("ngc-pytorch-resnet50", range(1, 125), "at least 120 lines, the log has 119"),
        ("ngc-pytorch-bert", range(1, 125), "at least 120 lines, the log has 119"),
        ("mxnet-resnet50", range(121), "exactly 120 lines, the log has 121"),
        ("mindspore-bert", range(10, 60, 10), "the times of 100 steps of 4 ranks"),
    ],
)
def test_a_log_of_fewer_or_more_lines_is_refused(name, printed, wanted):
    measured = measure_written(name, uneven(name, printed), method="published")
    assert measured.reason == f"the published method needs {wanted}"


def test_gluon_nlp_takes_medians_over_ranks_and_averages_them():
    latencies = RANDOM.uniform(180, 220, (200, WORLD)).round(1)
    steps = np.repeat(np.arange(200) + 1, WORLD)
    speeds = [[1000.0 / value * 32 for value in row] for row in latencies.tolist()]
    expected = mean(statistics.median(row) for row in speeds[100:])
    assert (
        published("mxnet-bert", taking("mxnet-bert", latencies.ravel() / 1000, steps)) == expected
    )


def test_pytorch_averages_times_and_keeps_one_digit_before_the_point():
    times = RANDOM.uniform(0.2, 0.5, 130).round(3)
    times[30] = 12.054
    counted = np.where(times >= 10, times - 10, times)[26:126]
    expected = round(32 / (sum(counted.tolist()) / 100), 2)
    lines = taking("pytorch-resnet50", times, range(130))
    assert published("pytorch-resnet50", lines) == pytest.approx(expected, abs=0.011)


def test_paddlecv_averages_speeds_made_of_printed_times():
    times = RANDOM.uniform(0.2, 0.5, 120).round(4)
    expected = mean(round(32 / value, 4) for value in times[20:])
    assert published("paddle1-resnet50", taking("paddle1-resnet50", times, range(120))) == expected


def test_paddlenlp_multiplies_by_the_batch_of_a_node():
    speeds = RANDOM.uniform(3, 5, 140).round(6)
    expected = mean(round(speed * 2 * 8, 4) for speed in speeds[20:120])
    assert published("paddle1-bert", taking("paddle1-bert", 2 / speeds, range(1, 141))) == expected


@pytest.mark.parametrize(("name", "first"), [("mindspore-resnet50", 100), ("mindspore-bert", 20)])
def test_mindspore_adds_up_the_epoch_times_of_all_ranks(name, first):
    times = RANDOM.uniform(2, 3, 20 * WORLD).round(6)
    lines = taking(name, times / 10, np.repeat(np.arange(10, 210, 10), WORLD))
    seconds = sum(times[first // 10 * WORLD : (first + 100) // 10 * WORLD])
    assert published(name, lines) == round(32 / (seconds / (100 * WORLD)), 2)


def test_hugectr_gives_milliseconds_an_iteration_without_the_first_line():
    times = [0.315066, *RANDOM.uniform(0.20, 0.25, 11).round(6).tolist()]
    tens = taking("hugectr-wide-deep", np.divide(times, 10), range(100, 1300, 100))
    lines = [line.replace("Time(10 iters)", "Time(100 iters)") for line in tens]
    measured = measure_written("hugectr-wide-deep", lines, method="published")
    assert measured.throughput == round(1000 * sum(times[1:]) / 11 / 100, 3)
    assert measured.unit == "ms/iteration"


def test_oneflow_wide_deep_gives_the_seconds_of_a_thousand_iterations():
    lines = [
        "100 time 1602836839.6445205 loss 0.5471092355251312",
        "200 time 1602836842.5530608 loss 0.5126773762702942",
        "1100 time 1602836869.3806155 loss 0.4920539349317551",
    ]
    measured = measure_written("oneflow-wide-deep", lines, method="published")
    assert measured.throughput == round(1602836869.3806155 - 1602836839.6445205, 3)
    assert (measured.first, measured.last) == (100, 1100)


def test_oneflow_models_leaves_out_the_first_and_the_last_line():
    times = (0.08158, 0.0022327776625752449, 0.00225, 0.00231083)
    lines = taking("oneflow-models-wide-deep", times, range(100, 500, 100))
    assert published("oneflow-models-wide-deep", lines) == round((2.2327776625752449 + 2.25) / 2, 3)


@pytest.mark.parametrize(
    "name", ["fleetx-bert", "paddle2-bert", "paddle2-resnet50", "pipedream", "mlperf"]
)
def test_where_nothing_was_published_there_is_no_published_method(name):
    lines = uneven(name, range(STYLES[name].first, 201))
    measured = measure_written(name, lines, method="published")
    assert measured.reason == f"no extractor was published for {name}"
