"""Logs written in the exact form of each format, for tests.

A template under tests/data/logs/written is one iteration of a log, with what stands before and
behind; between < and > stands what varies, by _names. It follows the sources that the format's
module names; docs/log-formats.md shows its lines.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import CodeType

TEMPLATES = Path(__file__).resolve().parents[2] / "data" / "logs" / "written"
START = datetime(2020, 9, 15, 14, 29, 13, tzinfo=UTC)
STEP = 0.25
SLOW_STEP = 4.0  # seconds an iteration takes, and where times are printed in whole seconds
OF_HOURS = 0.36  # the smallest step, in seconds, of hours with four digits
NODES, DEVICES, BATCH = 2, 2, 8
WORLD = NODES * DEVICES
GLOBAL_BATCH = WORLD * BATCH
RATE = GLOBAL_BATCH / STEP
TOPOLOGY = (("nodes", NODES), ("devices_per_node", DEVICES))
BATCH_AND_TOPOLOGY = (("batch_size", BATCH), *TOPOLOGY)


def _names(i: int, t: float, rate: float) -> dict[str, object]:
    """What the line of an iteration may say, by the names in templates.

    Args:
        i: the iteration, as printed.
        t: the seconds since START at its end.
        rate: the speed of all devices, in samples/s.
    """
    took, at, unix = GLOBAL_BATCH / rate, START + timedelta(seconds=t), START.timestamp() + t
    hours, rest = divmod(int(t), 3600)
    elapsed = (f"{hours}:" if hours else "") + f"{rest // 60:02d}:{rest % 60:02d}"
    return {
        "i": i,
        "t": t,
        "rate": rate,
        "took": took,  # seconds
        "ms": 1000 * took,
        "so_far": max(t - 3, 0.001),  # seconds since the first iteration began
        "samples": i * GLOBAL_BATCH,
        "loss": f"{7 - t / 1e5:.6f}",  # tells the runs in one log apart
        "at": at,
        "millis": f"{at.microsecond // 1000:03d}",
        "unix": unix,
        "time_ms": int(START.timestamp() * 1000 + t * 1000),
        "elapsed": elapsed,
        "bar": f"{i // 10:3d}%|#         | {i}/1000 [{elapsed}<1:00:00,  4.00s/it",  # as of tqdm
    }


_FIELD = re.compile(r"<([a-z][^>]*|\d+ [^>]*)>")


@dataclass(frozen=True)
class Style:
    """How one format writes, about two nodes of two devices with a batch of 8 each."""

    name: str  # of the format, and of its template
    every: int = 1  # iterations between two lines
    first: int = 1  # the first iteration that is printed
    # what the log does not say, for the command line
    facts: tuple[tuple[str, int], ...] = BATCH_AND_TOPOLOGY
    has_time: bool = True
    step: float = STEP  # seconds an iteration takes
    says_batch: bool = False  # whether a log that can be read says its global batch
    # the seconds of which a written time is a multiple; None: any time is written
    unit: float | None = None

    @cached_property
    def _parts(self) -> tuple[list[str], list[str], list[str]]:
        """The lines before those of an iteration, these, and the lines behind."""
        lines = (TEMPLATES / f"{self.name}.log").read_text(encoding="utf-8").splitlines()
        varying = [number for number, line in enumerate(lines) if _FIELD.search(line)]
        start, stop = varying[0], varying[-1] + 1
        return lines[:start], lines[start:stop], lines[stop:]

    @cached_property
    def _code(self) -> CodeType:
        """The template of an iteration as an f-string."""
        pieces = _FIELD.split("\n".join(self._parts[1]))
        pieces[::2] = [text.replace("{", "{{").replace("}", "}}") for text in pieces[::2]]
        pieces[1::2] = [f"{{{field}}}" for field in pieces[1::2]]
        return compile("f" + repr("".join(pieces)), self.name, "eval")

    @property
    def head(self) -> list[str]:
        """What stands before the first iteration."""
        return self._parts[0]

    @property
    def tail(self) -> list[str]:
        """What stands behind the last one."""
        return self._parts[2]

    def line(self, iteration: int, seconds: float, rate: float) -> str:
        """What is printed of an iteration that ends so many seconds after START, at a speed."""
        return eval(self._code, {}, _names(iteration, seconds, rate))


_STYLES = (
    Style("oneflow-resnet50", every=20, first=20, facts=()),
    Style("oneflow-bert", every=20, first=19, facts=()),
    Style("ngc-pytorch-resnet50", facts=()),
    Style("ngc-pytorch-bert", facts=()),
    Style("ngc-tensorflow1-resnet50", first=0, facts=TOPOLOGY),
    Style("ngc-tensorflow1-bert", every=10, first=10),
    Style("ngc-mxnet-resnet50", first=0, facts=()),
    Style("mxnet-resnet50", first=0, facts=TOPOLOGY, has_time=False),
    Style("mxnet-bert", facts=TOPOLOGY),
    Style("pytorch-resnet50", first=0, facts=()),
    Style("tensorflow2-resnet50", every=20, first=20),
    Style("tensorflow2-bert"),
    Style("paddle1-resnet50", first=0, facts=(("nodes", 2),)),
    Style("paddle1-bert", has_time=False),
    Style("paddle2-resnet50", first=0, step=SLOW_STEP),
    Style("paddle2-bert", every=10, first=10, facts=TOPOLOGY),
    Style("mindspore-resnet50", every=10, first=10),
    Style("mindspore-bert", every=10, first=10),
    Style("hugectr-wide-deep", every=10, first=10, facts=()),
    Style("oneflow-wide-deep", every=20, first=20, facts=()),
    Style("oneflow-models-wide-deep", every=20, first=20, facts=TOPOLOGY),
    Style("pipedream", first=0),
    Style("mllog", every=20, first=20, facts=()),
    Style("mlperf", every=20, first=20),
    Style("mlperf-samples", every=10, first=10),
    Style("mlperf-losses", every=10, first=10, facts=(), says_batch=True),
    Style("mlperf-steps"),
    Style("mlperf-blocks", every=20, first=20, facts=(), says_batch=True),
    Style("mlperf-evaluations", every=20, first=20, facts=(), says_batch=True),
    Style("mlperf-passes", first=0, facts=(), says_batch=True),
    Style("ngc-pytorch-mlperf-bert", facts=TOPOLOGY, says_batch=True),
    Style("ngc-mxnet-ssd", every=20, first=20),
    Style("ngc-pytorch-ssd", every=20, first=0, facts=(("global_batch", 32),), has_time=False),
    Style("ngc-pytorch-transformer", facts=(), has_time=False),
    Style("ngc-pytorch-dlrm", every=10, first=10),
    Style("facebook-dlrm", every=10, first=10),
    Style("torchvision", every=20, first=0),
    Style("ngc-pytorch-gnmt", first=0),
    Style("ngc-pytorch-classification", facts=()),
    Style("ngc-mxnet-classification", every=20, first=19, facts=()),
    Style("gluoncv", facts=(("global_batch", 32),), has_time=False),
    Style("deepspeed", every=10, first=10, facts=(), says_batch=True),
    Style("paddleseg", every=10, first=10, facts=()),
    Style("paddledetection", every=20, first=0, facts=TOPOLOGY, step=SLOW_STEP),
    Style("paddlerec-batches", every=10, first=0, facts=TOPOLOGY),
    Style("openmmlab", every=10, first=10, facts=()),
    Style("mmengine", every=20, first=20, facts=(("batch_size", 8),), step=SLOW_STEP),
    Style("detectron2", every=20, first=19, facts=(), step=SLOW_STEP, says_batch=True),
    Style("tf-cnn-benchmarks", every=10, first=10, facts=(), step=SLOW_STEP, says_batch=True),
    Style("modded-nanogpt"),
    Style("ngc-pytorch-transformerxl", every=10, first=10, facts=(), says_batch=True),
    Style("ngc-pytorch-squad", facts=()),
    Style("ngc-pytorch-tacotron2", first=0, facts=()),
    Style("ngc-pytorch-tacotron2-nvlog", first=0, facts=()),
    Style("paddle2-transformer", facts=(), has_time=False),
    Style("paddlerec", facts=(), has_time=False),
    Style("megatron", every=10, first=10, facts=(), says_batch=True),
    Style("megatron-deepspeed", every=10, first=10, facts=(), says_batch=True),
    Style("nemo", first=0, facts=(), says_batch=True),
    Style("torchtitan", every=10, first=10, facts=()),
    Style("maxtext", first=0, facts=()),
    Style("gluonnlp-bert", every=10, first=9, facts=()),
    Style("ngc-pytorch-rnnt", facts=(*BATCH_AND_TOPOLOGY, ("accumulation", 1))),
    Style("maskrcnn-benchmark", every=20, first=20),
    Style("ngc-pytorch-gnn"),
    Style("lightning", step=SLOW_STEP),
    Style("yolov7", facts=(), step=SLOW_STEP, says_batch=True),
    Style("huggingface", facts=(), step=SLOW_STEP, says_batch=True),
    Style("keras", has_time=False),
    Style("composer", facts=(), step=10 * OF_HOURS, unit=OF_HOURS),
    Style("nanogpt", first=0, facts=()),
    Style("llm-c", facts=()),
    Style("litgpt", facts=()),
    Style("build-nanogpt", first=0),
    Style("nanochat", first=0, facts=()),
    Style("nanotron", facts=(), step=SLOW_STEP),
    Style("levanter", facts=(*BATCH_AND_TOPOLOGY, ("accumulation", 1)), step=SLOW_STEP),
    Style("olmo", facts=(*BATCH_AND_TOPOLOGY, ("accumulation", 1))),
    Style("olmo-core", every=5, first=5, facts=(*BATCH_AND_TOPOLOGY, ("accumulation", 1))),
    Style("parameter-golf", facts=(), says_batch=True),
)
STYLES = {style.name: style for style in _STYLES}
STYLES["fleetx-bert"] = STYLES["paddle1-bert"]
SAME_LINES = ("fleetx-bert", "paddle1-bert")  # formats that only the user can tell apart
TIMED = sorted(name for name, style in STYLES.items() if style.has_time)
"""Formats whose lines tell times."""


def dll(seconds: float) -> str:
    """What stands before each line of NVIDIA's dllogger."""
    return f"DLL {START + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S.%f} -"


def rate(name: str) -> float:
    """The speed of all devices in a written log, in samples/s."""
    return GLOBAL_BATCH / STYLES[name].step


def iterations(name: str, last: int = 200) -> range:
    """The iterations that a log of a format prints."""
    return range(STYLES[name].first, last + 1, STYLES[name].every)


def written(name: str, last: int = 200, start: float = 0.0) -> list[str]:
    """A whole log, without the line ends, that begins so many seconds after START."""
    style = STYLES[name]
    lines = [style.line(i, start + 3 + i * style.step, rate(name)) for i in iterations(name, last)]
    return [*style.head, "some other line", *"\n".join(lines).split("\n"), *style.tail]


def uneven_steps(name: str, last: int = 200, digits: int = 3) -> Iterator[tuple[int, float, float]]:
    """The printed iterations of a log each of whose steps takes another time.

    Args:
        name: of the format.
        last: iteration that is printed last.
        digits: decimals of the seconds between two lines. All formats print two, or none.

    Yields:
        The iteration, the seconds after START at its end, and those since the line before.
    """
    style, chance, seconds = STYLES[name], random.Random(1), 3.0
    for iteration in iterations(name, last):
        took = style.every * style.step * (0.8 + 0.4 * chance.random())
        took = round(took, 0 if style.step == SLOW_STEP else digits)
        took = round(took / style.unit) * style.unit if style.unit else took
        seconds += took
        yield iteration, seconds, took


def uneven(name: str, last: int = 200, digits: int = 3) -> list[str]:
    """That log, without the line ends."""
    style = STYLES[name]
    lines = [
        style.line(iteration, seconds, GLOBAL_BATCH * style.every / took)
        for iteration, seconds, took in uneven_steps(name, last, digits)
    ]
    return [*style.head, "some other line", *lines, *style.tail]
