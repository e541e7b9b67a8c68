"""Excerpts of real logs: each gives what its lines give by hand, or the right refusal.

tests/data/logs/README.md says where each is from. Where we ran the program ourselves, a clock of
our own ran beside it, in a callback that wrote down the ends of iterations.
"""

from typing import NamedTuple

import pytest

from tests.unit.logs.asking import REAL, measure, measure_one


def read(name: str) -> bytes:
    return (REAL / f"{name}.log").read_bytes()


@pytest.mark.parametrize(
    ("name", "published", "ends"),
    [
        ("oneflow_resnet50_2n8g_b128_fp32", 5915.65, (20, 120)),
        ("oneflow_bert_1n1g_b24_fp32", 140.20, (19, 119)),
    ],
)
def test_published_repeats_are_reproduced(name, published, ends):
    by_window = measure_one(read(name))
    assert round(by_window.throughput, 2) == published
    assert (by_window.first, by_window.last) == ends
    assert measure_one(read(name), method="published").throughput == published


TWO_NODES = (("batch_size", 128), ("nodes", 2), ("devices_per_node", 8))
FOUR_NODES = (("batch_size", 128), ("nodes", 4), ("devices_per_node", 8))
ONE_DEVICE = {"facts": (("batch_size", 128), ("nodes", 1), ("devices_per_node", 1))}
PUBLISHED = {"facts": TWO_NODES, "method": "published"}
NGC_2, NGC_4 = (f"ngc-pytorch_resnet50_{nodes}n8g_b128_fp32" for nodes in (2, 4))
PYTORCH, PADDLE = "pytorch_resnet50_2n8g_b128_fp32", "paddle_bert_fleetx"
UNTIMED = ("oneflow_resnet50_1n1g_b128_fp32_nots", "oneflow_bert_1n1g_nots")
OTHER_WORLD = (
    "the printed speeds mean 4096 images a step, the global batch is 2048 under a world size of 16"
)
NO_TIMES = "the log prints neither time stamps nor durations"


@pytest.mark.parametrize(
    ("name", "asked", "reason"),
    [
        (NGC_2, {}, OTHER_WORLD),
        (NGC_4, {}, "too short: it ends at iteration 12, the window at 120"),
        (NGC_4, {"facts": TWO_NODES[1:]}, "number of nodes is 4 by the log, 2 by the command line"),
        *((name, ONE_DEVICE, NO_TIMES) for name in UNTIMED),
        (PYTORCH, PUBLISHED, "the published method needs at least 120 lines, the log has 7"),
        (PADDLE, {}, "the log fits fleetx-bert and paddle1-bert: say which it is with --format"),
        # The validation line holds a speed, too, and is none of them.
        (
            PADDLE,
            {**PUBLISHED, "log_format": "paddle1-bert"},
            "the published method needs at least 120 lines, the log has 3",
        ),
    ],
)
def test_a_refusal_names_its_reason(name, asked, reason):
    assert measure_one(read(name), **asked).reason == reason


@pytest.mark.parametrize("name", UNTIMED)
def test_the_published_method_needs_time_stamps_too(name):
    assert "no time stamps" in measure_one(read(name), method="published", **ONE_DEVICE).reason


def test_a_speed_that_fits_the_world_size_is_measured():
    measured = measure_one(read(NGC_4), ends=(5, 12))
    assert measured.throughput == pytest.approx(10379.67, abs=0.005)
    assert (measured.global_batch, measured.world_size) == (4096, 32)


def test_pytorch_lines_tell_the_time_of_one_iteration_each():
    content = read(PYTORCH)
    measured = measure_one(content, ends=(5, 10), facts=TWO_NODES)
    assert measured.throughput == pytest.approx(2048 * 5 / (0.403 + 0.555 + 0.529 + 0.437 + 0.575))
    holes = measure_one(content, ends=(5, 15), facts=TWO_NODES)
    assert "the time from iteration 10 to 13 is not in the log" in holes.reason


def test_pytorch_lines_of_a_second_rank_are_not_taken_for_the_first_ones():
    results = measure(read("pytorch_resnet50_4n8g_b128_fp32"), facts=FOUR_NODES)
    assert [one.status for one in results] == ["refused", "refused"]


def test_epoch_times_need_the_size_of_an_epoch():
    content = read("pipedream_epoch_seconds_from_seed")
    assert {one.reason for one in measure(content, ends=(0, 1))} == {
        "the global batch is not known: neither log, record nor path says it; "
        "allowed: --batch-size and --topology, or --global-batch"
    }
    told = (("global_batch", 1000000),)
    data_parallel, pipelined, vgg = measure(content, ends=(0, 1), facts=told)
    assert data_parallel.throughput == pytest.approx(1000000 / 144.396)
    assert pipelined.throughput == pytest.approx(1000000 / 102.291)
    assert vgg.seconds == 2430.059


def test_a_quoted_epoch_is_none():
    epochs = [f"Epoch {n}: {100 + n}.250 seconds" for n in range(6)]
    quoted = "best run so far: Epoch 3: 7.000 seconds"
    for at in range(1, len(epochs) + 1):
        lines = [*epochs[:at], quoted, *epochs[at:]]
        measured = measure_one(lines, ends=(1, 5), facts=(("global_batch", 1000),))
        assert measured.seconds == 102.25 + 103.25 + 104.25 + 105.25


ONE = (("batch_size", 8), ("nodes", 1), ("devices_per_node", 1))
AN_EPOCH = (*ONE, ("epoch_samples", 96))


class Ran(NamedTuple):
    """A program that we ran."""

    log: str  # name of its output
    format: str  # of the output
    ends: tuple[int, int]  # two iterations
    seconds: float  # between their ends, by a clock of our own, which reperf never saw
    samples: int  # trained on between them
    facts: tuple = ONE  # what the command line must say


RAN = [
    Ran("ran_huggingface", "huggingface", (20, 120), 105.996, 1600, ()),
    Ran("ran_lightning", "lightning", (20, 120), 103.081, 800),
    Ran("ran_keras2", "keras", (1, 3), 121.109, 192, AN_EPOCH),
    Ran("ran_keras2_verbose2", "keras", (1, 3), 121.111, 192, AN_EPOCH),
    Ran("ran_keras3", "keras", (1, 3), 121.333, 192, AN_EPOCH),
    Ran("ran_keras3_verbose2", "keras", (1, 3), 121.438, 192, AN_EPOCH),
    Ran("ran_pytorch_imagenet", "pytorch-resnet50", (20, 120), 111.995, 800),
    Ran("ran_mxnet_speedometer", "ngc-mxnet-resnet50", (20, 120), 10.261, 800),
    Ran("ran_tensorflow2_timehistory", "tensorflow2-resnet50", (20, 120), 10.853, 800),
    Ran("ran_mmengine", "mmengine", (20, 120), 106.525, 800),
    Ran("ran_reperf_resnet50", "mllog", (20, 120), 54.269, 200, ()),
]


@pytest.mark.parametrize("ran", RAN, ids=[ran.log for ran in RAN])
def test_what_we_ran_took_as_long_as_a_clock_of_our_own_says(ran):
    measured = measure_one(read(ran.log), ends=ran.ends, facts=ran.facts)
    assert (measured.format, measured.reason) == (ran.format, "")
    assert measured.samples == ran.samples
    assert measured.throughput == pytest.approx(ran.samples / ran.seconds, rel=0.01)


def test_every_output_of_ours_is_asked_about():
    assert {path.stem for path in REAL.glob("ran_*")} == {ran.log for ran in RAN}
