"""A log of each format: the number must be what a reader with a pencil gets from its columns.

Each row below says after which words a line counts, and after which it tells a time. The truth is
the difference of two times, or the sum of some, found by splitting lines at these words: neither
patterns, nor records, nor clocks of reperf's are asked. Four devices had a batch of 8 each.
"""

import re
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

import pytest

from tests.unit.logs.asking import measure_one
from tests.unit.logs.written import GLOBAL_BATCH, STYLES, TIMED, WORLD, uneven

DATE, CLOCK, UNIX, MILLISECONDS = "date", "clock", "unix", "milliseconds"
YEARLESS, ELAPSED, EACH = "date without a year", "elapsed", "each"
LAST = "the last word"
TIME_MS = '"time_ms": '


class Columns(NamedTuple):
    """Where a line says what.

    Attributes:
        count: the words before the iteration.
        time: the words before the time, if the line does not begin with it; or LAST.
        form: how a time is written; EACH: it is how long iterations took.
        unit: of such a duration, in seconds.
        counted: how much one iteration adds to the count.
        mean: whether it is of one iteration of those since the line before, not of all.
    """

    count: str
    time: str
    form: str
    unit: float = 1.0
    mean: bool = False
    counted: int = 1


COLUMNS = {
    "deepspeed": Columns("global_step=", "[", DATE),
    "detectron2": Columns("iter: ", "[", YEARLESS),
    "gluonnlp-bert": Columns("[step ", " time=", EACH),
    "hugectr-wide-deep": Columns("Iter: ", "iters): ", EACH),
    "huggingface": Columns("#         | ", "[", ELAPSED),
    "lightning": Columns("#         | ", "[", ELAPSED),
    "maskrcnn-benchmark": Columns("iter: ", "", DATE),
    "maxtext": Columns("step: ", "seconds: ", EACH),
    "megatron": Columns("] iteration ", "(ms): ", EACH, 0.001, mean=True),
    "mllog": Columns('"iteration": ', '"seconds": ', UNIX),
    "mlperf": Columns('"step_num": ', TIME_MS, MILLISECONDS),
    "mlperf-blocks": Columns('"samples_count": ', TIME_MS, MILLISECONDS, counted=GLOBAL_BATCH),
    "mlperf-evaluations": Columns(
        '1160, "epoch_num": ', TIME_MS, MILLISECONDS, counted=GLOBAL_BATCH
    ),
    "mlperf-passes": Columns('"epoch_num": ', TIME_MS, MILLISECONDS),
    "mlperf-steps": Columns('"step": ', TIME_MS, MILLISECONDS),
    "mlperf-losses": Columns('"samples_count": ', TIME_MS, MILLISECONDS, counted=GLOBAL_BATCH),
    "mlperf-samples": Columns('"step": ', TIME_MS, MILLISECONDS),
    "mmengine": Columns("[1][", "", YEARLESS),
    "modded-nanogpt": Columns("step:", "train_time:", MILLISECONDS),
    "mxnet-bert": Columns("[step ", "latency=", EACH, 0.001),
    "nemo": Columns("global_step: ", "timing in s: ", EACH),
    "ngc-mxnet-classification": Columns("Iteration: ", "DLL ", DATE),
    "ngc-mxnet-resnet50": Columns("Batch [", "", DATE),
    "ngc-pytorch-bert": Columns("Training Iteration: ", "DLL ", DATE),
    "ngc-pytorch-classification": Columns("Iteration: ", "DLL ", DATE),
    "ngc-pytorch-gnmt": Columns("TRAIN [0][", "Time ", EACH),
    "ngc-pytorch-gnn": Columns("Iteration ", "DLL ", DATE),
    "ngc-pytorch-mlperf-bert": Columns("'global_steps': ", "'timestamp': ", UNIX),
    "ngc-pytorch-squad": Columns("Training Iteration: ", "DLL ", DATE),
    "ngc-pytorch-tacotron2": Columns("(0, ", "DLL ", DATE),
    "ngc-pytorch-tacotron2-nvlog": Columns("train_iter_stop: ", "Tacotron2_PyT ", UNIX),
    "ngc-pytorch-transformerxl": Columns(" step ", "ms/batch ", EACH, 0.001, mean=True),
    "ngc-mxnet-ssd": Columns("[Iteration ", "training time: ", EACH, 0.001, mean=True),
    "ngc-pytorch-dlrm": Columns("[0/1] [", "step_time: ", EACH, 0.001, mean=True),
    "facebook-dlrm": Columns("training it ", "epoch 0, ", EACH, 0.001, mean=True),
    "ngc-pytorch-resnet50": Columns("Iteration: ", "DLL ", DATE),
    "ngc-pytorch-rnnt": Columns("iter ", "DLL ", DATE),
    "ngc-tensorflow1-bert": Columns("Iteration: ", "DLL ", DATE),
    "ngc-tensorflow1-resnet50": Columns("(0, ", "DLL ", DATE),
    "oneflow-bert": Columns("step: ", LAST, UNIX),
    "oneflow-models-wide-deep": Columns("iter: ", "| ", DATE),
    "oneflow-resnet50": Columns("iter ", LAST, UNIX),
    "oneflow-wide-deep": Columns("", "time ", UNIX),
    "openmmlab": Columns("Iter [", "", DATE),
    "paddle1-resnet50": Columns("train batch ", "elapse ", EACH),
    "paddle2-bert": Columns("global step ", "[", DATE),
    "paddle2-resnet50": Columns("train step:", "[", DATE),
    "paddleseg": Columns("iter: ", "batch_cost: ", EACH, mean=True),
    "pipedream": Columns("Epoch ", ": ", EACH),
    "pytorch-resnet50": Columns("Epoch: [0][", "Time ", EACH),
    "tensorflow2-bert": Columns("Train Step: ", " ", CLOCK),
    "tensorflow2-resnet50": Columns("and ", " ", CLOCK),
    "tf-cnn-benchmarks": Columns("|27| ", "INFO|", DATE),
    "torchtitan": Columns("step: ", "[titan] ", DATE),
    "torchvision": Columns("[0]  [", "time: ", EACH, mean=True),
}
SUNK = ("mindspore-bert", "mindspore-resnet50")
"""A line counts tens of steps, and the next one tells the milliseconds of ten."""


def lines_of(name: str) -> list[str]:
    """Some lines of a written log, each of whose steps takes another time."""
    style = STYLES[name]
    last = style.first + (6 * style.every if style.every > 1 else 40)
    return "\n".join(uneven(name, last)).split("\n")


def after(line: str, words: str) -> str:
    """What stands behind some words."""
    if words == LAST:
        return line.rsplit(maxsplit=1)[-1]
    return line[line.index(words) + len(words) :].lstrip()


def digits(text: str) -> str:
    """The number with which a text begins."""
    size = next((at for at, sign in enumerate(text) if sign not in "0123456789."), len(text))
    return text[:size]


def clock(text: str, form: str) -> float:
    """The seconds that a written time says, since whenever."""
    if form == DATE:
        parted = re.sub("[]T|]", " ", text.replace("/", "-").replace(",", "."))
        day, hour = parted.split(" ")[:2]
        return datetime.fromisoformat(f"{day} {hour.removesuffix(':INFO:')}").timestamp()
    if form == YEARLESS:
        return datetime.strptime(f"2020/{text[:14]}", "%Y/%m/%d %H:%M:%S").timestamp()
    if form in (CLOCK, ELAPSED):
        parts = text.split(" ", maxsplit=1)[0].split("<", maxsplit=1)[0].split(":")
        return sum(float(part) * 60**power for power, part in enumerate(reversed(parts)))
    return float(digits(text)) * (0.001 if form == MILLISECONDS else 1)


def by_hand(name: str) -> tuple[int, int, float]:
    """Two iterations that a log prints, and the seconds between their ends."""
    columns = COLUMNS[name]
    words = [one for one in (columns.count, columns.time) if one != LAST]
    lines = [line for line in lines_of(name) if all(one in line for one in words)]
    if not columns.count:
        lines = [line for line in lines if line[0].isdigit()]
    found = lines[8 if len(lines) > 20 else 3 :]
    counts = [int(digits(after(line, columns.count))) // columns.counted for line in found]
    times = [after(line, columns.time) for line in found]
    if columns.form != EACH:
        return counts[0], counts[-1], clock(times[-1], columns.form) - clock(times[0], columns.form)
    seconds = 0.0
    for (before, count), time in zip(pairwise(counts), times[1:], strict=True):
        seconds += float(digits(time)) * columns.unit * (count - before if columns.mean else 1)
    return counts[0], counts[-1], seconds


def test_every_format_that_tells_times_has_its_columns():
    assert set(TIMED) == {*COLUMNS, *SUNK}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_log_gives_what_its_columns_give(name):
    first, last, seconds = by_hand(name)
    measured = measure_one(lines_of(name), ends=(first, last), facts=STYLES[name].facts)
    assert (measured.format, measured.reason) == (name, "")
    assert measured.seconds == pytest.approx(seconds, rel=1e-6)
    assert measured.throughput == pytest.approx(GLOBAL_BATCH * (last - first) / seconds, rel=1e-6)
    assert measured.world_size in (None, WORLD)
    assert measured.global_batch == GLOBAL_BATCH


@pytest.mark.parametrize("name", SUNK)
def test_sunk_steps_take_the_time_of_the_line_behind_their_count(name):
    times = [after(line, "epoch time: ") for line in lines_of(name) if "time: " in line]
    seconds = sum(float(digits(time)) for time in times[2:6]) / 1000
    measured = measure_one(lines_of(name), ends=(20, 60), facts=STYLES[name].facts)
    assert measured.reason == ""
    assert measured.throughput == pytest.approx(GLOBAL_BATCH * 40 / seconds)
