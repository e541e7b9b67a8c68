"""The published methods, each against its extractor's arithmetic done by hand on uneven logs."""

import statistics

import numpy as np
import pytest

from tests.unit.logs.asking import measure_written
from tests.unit.logs.written import RATE, START, STEP, STYLES, WORLD

RANDOM = np.random.default_rng(1)
SECONDS = STEP * RANDOM.uniform(0.8, 1.2, 700)
"""How long each iteration takes."""
ENDS = np.cumsum(SECONDS).tolist()
SPEEDS = (32 / SECONDS).tolist()


def uneven(name: str, first: int, last: int, every: int = 1) -> list[str]:
    """A log whose iterations differ: number n ends at ENDS[n] and goes at SPEEDS[n]."""
    style = STYLES[name]
    numbers = range(first, last + 1, every)
    return [*style.head, *(style.line(n, ENDS[n], SPEEDS[n]) for n in numbers), *style.tail]


def published(name: str, lines: list[str]) -> float:
    measured = measure_written(name, lines, method="published")
    assert measured.reason == ""
    return measured.throughput


@pytest.mark.parametrize(
    ("name", "first", "last"), [("oneflow-resnet50", 20, 120), ("oneflow-bert", 19, 119)]
)
def test_oneflow_takes_two_time_stamps(name, first, last):
    start, stop = (float(f"{START.timestamp() + ENDS[n]:.7f}") for n in (first, last))
    expected = round(32 * 100 / (stop - start), 2)
    assert published(name, uneven(name, first, 200, every=20)) == expected


@pytest.mark.parametrize("name", ["ngc-pytorch-resnet50", "ngc-pytorch-bert"])
def test_ngc_pytorch_counts_lines_behind_iteration_5(name):
    seconds = round(ENDS[125], 6) - round(ENDS[25], 6)
    expected = round(32 / (seconds / 100), 2)
    assert published(name, uneven(name, 1, 150)) == expected
    short = measure_written(name, uneven(name, 1, 124), method="published")
    assert short.reason == "the published method needs at least 120 lines, the log has 119"


def test_ngc_tensorflow_resnet50_averages_the_first_hundred_printed_speeds():
    expected = round(float(np.mean([round(speed, 2) for speed in SPEEDS[20:120]])), 2)
    assert published("ngc-tensorflow1-resnet50", uneven("ngc-tensorflow1-resnet50", 20, 130)) == (
        expected
    )


def test_ngc_tensorflow_bert_takes_the_stamps_of_20_and_120():
    seconds = round(ENDS[120], 6) - round(ENDS[20], 6)
    lines = uneven("ngc-tensorflow1-bert", 10, 130, every=10)
    assert published("ngc-tensorflow1-bert", lines) == round(32 / (seconds / 100), 2)


def test_ngc_mxnet_counts_the_lines_of_all_ranks():
    lines = [line for line in uneven("ngc-mxnet-resnet50", 0, 130) for _ in range(WORLD)]
    milliseconds = [round(ENDS[n] * 1e6) // 1000 for n in (19, 119)]
    seconds = (milliseconds[1] - milliseconds[0]) / 1000
    assert published("ngc-mxnet-resnet50", lines) == round(32 / (seconds / 100), 2)


def test_gluon_cv_averages_and_wants_exactly_120_lines():
    expected = round(float(np.mean([round(speed, 2) for speed in SPEEDS[20:120]])), 2)
    assert published("mxnet-resnet50", uneven("mxnet-resnet50", 0, 119)) == expected
    longer = measure_written("mxnet-resnet50", uneven("mxnet-resnet50", 0, 120), method="published")
    assert longer.reason == "the published method needs exactly 120 lines, the log has 121"


def test_gluon_nlp_takes_medians_over_ranks_and_averages_them():
    latencies = RANDOM.uniform(180, 220, (200, WORLD)).round(1)
    pattern = STYLES["mxnet-bert"].line(1, 0.25, RATE).replace("[step 1]", "[step %d]")
    pattern = pattern.replace("250.0 ms", "%.1f ms")
    lines = [pattern % (step + 1, latency) for step in range(200) for latency in latencies[step]]
    speeds = [[1000.0 / value * 32 for value in row] for row in latencies.tolist()]
    expected = round(float(np.mean([statistics.median(row) for row in speeds[100:]])), 2)
    assert published("mxnet-bert", [*STYLES["mxnet-bert"].head, *lines]) == expected


def test_pytorch_averages_times_and_keeps_one_digit_before_the_point():
    times = RANDOM.uniform(0.2, 0.5, 130).round(3)
    times[30] = 12.054
    template = STYLES["pytorch-resnet50"].line(0, 0.25, RATE)
    lines = [
        template.replace("[  0/", f"[{n:3d}/").replace(f"{STEP:6.3f} (", f"{seconds:6.3f} (")
        for n, seconds in enumerate(times)
    ]
    counted = np.where(times >= 10, times - 10, times)[26:126]
    expected = round(32 / (sum(counted.tolist()) / 100), 2)
    head = STYLES["pytorch-resnet50"].head
    assert published("pytorch-resnet50", [*head, *lines]) == pytest.approx(expected, abs=0.011)


def test_tensorflow_resnet50_leaves_out_the_first_hundred_steps():
    lines = uneven("tensorflow2-resnet50", 100, 600, every=100)
    expected = round(float(np.mean([round(SPEEDS[n], 2) for n in range(200, 601, 100)])), 2)
    assert published("tensorflow2-resnet50", lines) == expected


def test_tensorflow_bert_counts_lines():
    seconds = round(ENDS[120], 6) - round(ENDS[20], 6)
    assert published("tensorflow2-bert", uneven("tensorflow2-bert", 1, 120)) == round(
        32 / (seconds / 100), 2
    )


def test_paddlecv_averages_speeds_made_of_printed_times():
    times = RANDOM.uniform(0.2, 0.5, 120).round(4)
    template = STYLES["paddle1-resnet50"].line(0, 0.25, RATE)
    lines = [
        template.replace("batch 0]", f"batch {n}]").replace("0.2500 sec", f"{seconds:.4f} sec")
        for n, seconds in enumerate(times)
    ]
    expected = round(float(np.mean([round(32 / value, 4) for value in times[20:]])), 2)
    measured = measure_written(
        "paddle1-resnet50",
        [*STYLES["paddle1-resnet50"].head, *lines],
        method="published",
    )
    assert measured.throughput == expected


def test_paddlenlp_multiplies_by_the_batch_of_a_node():
    speeds = RANDOM.uniform(3, 5, 140).round(6)
    template = STYLES["paddle1-bert"].line(0, 0.25, RATE)
    lines = [
        template.replace("step: 0,", f"step: {n},").replace("8.000000 steps", f"{speed:f} steps")
        for n, speed in enumerate(speeds, start=1)
    ]
    expected = round(float(np.mean([round(speed * 2 * 8, 4) for speed in speeds[20:120]])), 2)
    assert published("paddle1-bert", lines) == expected


@pytest.mark.parametrize(("name", "first"), [("mindspore-resnet50", 100), ("mindspore-bert", 20)])
def test_mindspore_adds_up_the_epoch_times_of_all_ranks(name, first):
    times = RANDOM.uniform(2000, 3000, 20 * WORLD).round(3).tolist()
    lines = []
    for epoch in range(20):
        for rank in range(WORLD):
            seconds = times[epoch * WORLD + rank]
            counted, timed = STYLES[name].line(10 * (epoch + 1), 0, RATE).split("\n")
            timed = f"epoch time: {seconds:5.3f} ms, per step time: {seconds / 10:5.3f} ms"
            lines += [counted, timed]
    last = first + 100
    inside = times[first // 10 * WORLD : last // 10 * WORLD]
    cost = 0.0
    for value in inside:
        cost += value
    expected = round(32 / (cost / 1000 / (100 * WORLD)), 2)
    assert published(name, lines) == expected


def test_hugectr_gives_milliseconds_an_iteration_without_the_first_line():
    seconds = [0.315066, *RANDOM.uniform(0.20, 0.25, 11).round(6).tolist()]
    lines = [
        f"[HUGECTR][02:51:59][INFO][RANK0]: Iter: {100 * n} Time(100 iters): {value:f}s "
        "Loss: 0.125152 lr:0.001000"
        for n, value in enumerate(seconds, start=1)
    ]
    measured = measure_written("hugectr-wide-deep", lines, method="published")
    assert measured.throughput == round(1000 * sum(seconds[1:]) / 11 / 100, 3)
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
    latencies = [81.58, 2.2327776625752449, 2.25, 2.31083]
    lines = [
        f"[rank:0] iter: {100 * n}/1200, loss: 0.08, latency(ms): {value!r} | "
        f"2021-12-01 13:19:0{n}.625"
        for n, value in enumerate(latencies, start=1)
    ]
    measured = measure_written("oneflow-models-wide-deep", lines, method="published")
    assert measured.throughput == round((2.2327776625752449 + 2.25) / 2, 3)


@pytest.mark.parametrize(
    "name", ["fleetx-bert", "paddle2-bert", "paddle2-resnet50", "pipedream", "mlperf"]
)
def test_where_nothing_was_published_there_is_no_published_method(name):
    measured = measure_written(name, uneven(name, STYLES[name].first, 200), method="published")
    assert measured.reason == f"no extractor was published for {name}"
