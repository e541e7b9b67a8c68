"""Logs of MLPerf Training submissions: `:::MLLOG` lines, from which seven kinds of programs count.

The formats differ in the event that counts, and in what it counts. Where a name does not say whether it
counts samples, steps or epochs, the printed throughput decides.

Source: github.com/mlcommons/logging, mlperf_logging/mllog; github.com/mlcommons/training_results_v0.7 to
v5.1, hpc_results_v1.0 and v2.0.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from math import ceil, fsum, inf, isclose, isnan, nan
from typing import Any, NamedTuple

from reperf.logs.clock import MILLISECONDS
from reperf.logs.events import EVENT_LINE, MARK, event_of, facts_in, facts_of, is_number, is_whole
from reperf.logs.facts import Fact
from reperf.logs.format import NOTHING_ODD, Finder, Format, Prints, Read, Record, facts_by

_IMAGES = 1_170_301
"""What RetinaNet is trained on, MLPerf's ssd since v2.0: its part of OpenImages.

Source: github.com/mlcommons/training, single_stage_detector/README.md, "The MLPerf Subset".
"""
_RETINANET = re.compile(rb'"submission_benchmark", ?"value": ?"(?:ssd|retinanet)"')
_COUNTS = ("samples_count", "step_num", "step", "epoch_num")
_LOSSES = ("train_loss", "reduced_train_loss")
_TOOK = ("train_step_time", "train_step_timing", "train_step_timing in s")
_IN_PASSES = ("resnet", "ssd", "retinanet", "unet3d", "maskrcnn", "rnnt", "cosmoflow", "oc20")
"""The benchmarks whose epoch is a pass over the samples that another event gives. What bert, gpt3 and
dlrm call an epoch are samples, tokens or anything else."""
_MOST_EPOCHS = 10_000  # higher counts are of samples, as unet3d's since v4.0
_PAUSE = 1.0
"""Seconds between two blocks from which on the program did something else, such as save a checkpoint."""
_STARTS = {"block_start": "first_epoch_num", "epoch_start": "epoch_num"}


class _Event(NamedTuple):
    key: object
    value: Any  # of `tracked_stats` always a dictionary
    metadata: Mapping[str, Any]
    rank: tuple[int, ...]
    time: float  # in seconds; not a number: it has none


class _Log:
    """What the lines of one log have said so far."""

    def __init__(self) -> None:
        self.batch = 0
        self.tokens = 0  # the tokens of a sample; 0: not known
        self.samples = 0  # the samples of an epoch; 0: not known
        self.benchmark: object = None
        self.ranks: dict[tuple[int, ...], Any] = {}
        """What a kind remembers of each rank; forgotten where a run begins."""
        self.stops: dict[tuple[int, ...], tuple[int, float]] = {}
        """The step and the time at which each rank's block stopped, or 0 and the time at which its
        accuracy was known; forgotten where a run begins."""
        self.rates: list[float] = []
        self.has_losses = False

    def take(self, event: _Event) -> None:
        """Take what any kind needs to know."""
        if event.key == "global_batch_size" and is_whole(event.value) and event.value >= 1:
            self.batch = event.value
        elif event.key == "max_sequence_length" and is_whole(event.value):
            self.tokens = event.value
        elif event.key == "train_samples" and is_whole(event.value):
            self.samples = event.value
        elif event.key == "submission_benchmark":
            self.benchmark = event.value
        elif event.key == "throughput" and is_number(event.value):
            self.rates.append(event.value)
        if event.key in ("global_batch_size", "submission_benchmark"):
            self.ranks.clear()
            self.stops.clear()

    def batches(self, count: object) -> int | None:
        """How many whole batches were trained, by what this benchmark calls an epoch; None: not known."""
        each: float = 0
        # dlrm prints the share of the epoch's batches. A last batch that is not full counts as one.
        if self.benchmark in ("dlrm", "dlrm_dcnv2"):
            each = 1 / ceil(self.samples / self.batch) if self.samples and self.batch else 0
        elif is_whole(count):
            each = self.batch * {"gpt3": self.tokens, "openfold": 1}.get(str(self.benchmark), 0)
        if not each or not is_number(count):
            return None
        steps = count / each
        return round(steps) if isclose(steps, round(steps), rel_tol=1e-9) else None


Counted = tuple[int, float | None] | tuple[int, float | None, float]
"""The iteration that an event counts, the speed that is printed with it, and for how many seconds the
program stamps that it did not train before it."""


def _tracked(_log: _Log, event: _Event) -> Counted | None:
    value, metadata = event.value, event.metadata
    if "iteration" in value:
        return None  # it is ours, see mllog.py
    rate = value.get("throughput", value.get("imgs_sec"))  # MXNet's image classification of v2.1
    count = next((metadata[name] for name in _COUNTS if name in metadata), None)
    if not is_number(rate) or not is_whole(count):
        return None
    # Where a time is printed too, both are means since the epoch began: no interval's.
    averaged = "time" in value and "step" in metadata
    return count, None if averaged else rate


def _steps_with_samples(_log: _Log, event: _Event) -> Counted | None:
    step, samples = event.metadata.get("step"), event.metadata.get("samples_count")
    has_loss = any(name in event.value for name in _LOSSES)
    return (int(step), None) if has_loss and is_number(step) and is_number(samples) else None


def _timed_steps(log: _Log, event: _Event) -> Counted | None:
    took = next((event.value[name] for name in _TOOK if name in event.value), None)
    step, loss = event.metadata.get("step"), "reduced_train_loss" in event.value
    if not is_number(took) or took <= 0 or not is_number(step) or step != int(step):
        return None
    if not {"samples_count", "throughput"}.isdisjoint({*event.metadata, *event.value}):
        return None
    log.has_losses |= loss  # then a time without one is a mean over the steps before an evaluation
    return None if log.has_losses and not loss else (int(step), 1 / took)


def _blocks(log: _Log, event: _Event) -> Counted | None:
    step = event.metadata.get("step_num")
    if is_whole(step) and event.value == "training_step":
        return _steps_of_blocks(log, event, step)
    if log.benchmark == "gpt3" and event.key == "block_start" and log.tokens:
        steps = log.batches(event.metadata.get("first_epoch_num"))
        return (steps, None) if steps else None
    # Some programs count at a start how long the block will be, and some a stop's start.
    samples = event.metadata.get("samples_count")
    if not is_whole(samples) or samples < log.ranks.get(event.rank, 0):
        return None
    log.ranks[event.rank] = samples
    if event.key != "block_start" or not log.batch or samples % log.batch:
        return None
    return samples // log.batch, None


def _steps_of_blocks(log: _Log, event: _Event, step: int) -> Counted | None:
    """A block's start; what the program does between a stop and the next start is no training."""
    if event.key == "block_stop":
        log.stops[event.rank] = step, event.time
        return None
    stopped, time = log.stops.pop(event.rank, (None, 0.0))
    paused = event.time - time if stopped == step else 0.0
    return step, None, paused if paused > _PAUSE else 0.0


def _evaluations(log: _Log, event: _Event) -> Counted | None:
    samples, step = event.metadata.get("epoch_num"), event.metadata.get("step_num")
    if event.key == "eval_stop" and (trained := log.batches(samples)) is not None:
        _, known = log.stops.pop(event.rank, (0, event.time))
        return trained, None, max(0.0, event.time - known)  # up to the accuracy, others count it
    if event.key == "eval_start":
        counts = is_whole(samples) and is_whole(step) and samples == step * log.batch > 0
        log.ranks[event.rank] = (samples, step) if counts else None
    elif event.key == "eval_accuracy":
        log.stops[event.rank] = 0, event.time
        begun = log.ranks.pop(event.rank, None)
        if begun is None:
            return None
        return (begun[1], None) if samples == begun[0] else None
    return None


def _losses(log: _Log, event: _Event) -> Counted | None:
    if event.key != "train_loss" or not log.batch:
        return None
    steps, samples = event.metadata.get("step_num"), event.metadata.get("samples_count")
    if samples is not None:
        steps = samples // log.batch if is_whole(samples) and not samples % log.batch else None
    return (steps, None) if is_whole(steps) else None


def _passes(log: _Log, event: _Event) -> Counted | None:
    """An epoch; what follows a start that counts back is not training."""
    epoch = event.metadata.get(_STARTS.get(str(event.key), ""))
    if log.benchmark not in _IN_PASSES or not is_number(epoch) or epoch != int(epoch):
        return None
    first, before, by = log.ranks.get(event.rank, (int(epoch), 0, None))
    passed = int(epoch) - first
    if first not in (0, 1) or epoch > _MOST_EPOCHS or passed < before:
        log.ranks[event.rank] = first, inf, by  # until another run begins
        return None
    if passed == before and by not in (None, event.key):
        return None  # a block and its first epoch
    log.ranks[event.rank] = first, passed, event.key
    rate = fsum(log.rates) / len(log.rates) if log.rates else None
    log.rates.clear()
    return passed, rate


_facts_of_epochs = facts_of(
    {
        "global_batch_size": "global_batch",
        "samples_per_epoch": "epoch_trained",
        "train_samples": "epoch_samples",
    }
)
_devices = facts_by(world_size=r"[( ]world_size=(\d{1,6})[,)]")


def _facts(head: bytes) -> Iterable[Fact]:
    """What an epoch and a batch hold, and how many devices there are.

    Where RetinaNet's `train_samples` are its images only if they are counted in batches, within a
    batch or two that fill the last one up, they are batches.
    """
    yield from _devices(head)
    known = list(_facts_of_epochs(head))
    batches = {value for name, value in known if name == "global_batch"}
    retinanet = _RETINANET.search(head)
    for name, value in known:
        trained = {value * batch for batch in batches if abs(value * batch - _IMAGES) <= 2 * batch}
        if name == "epoch_samples" and retinanet and trained:
            yield from (("epoch_trained", samples) for samples in sorted(trained))
        else:
            yield name, value


def _format(
    name: str,
    count: Callable[[_Log, _Event], Counted | None],
    keys: str = "",
    *,
    samples: str = "",
    facts: Finder = facts_in,
    prints: Prints = NOTHING_ODD,
    **more: Any,  # noqa: ANN401 - the fields of a Format
) -> Format:
    """A format whose iterations are counted by events, and end when these are stamped.

    Args:
        count: what an event counts; None if it counts nothing.
        keys: a regular expression of the keys of the events that matter; left out, the key is
            `tracked_stats`.
        samples: of the events' metadata, what counts the samples trained on so far, if any does.
        prints: what is special about the lines, besides that the last is `run_stop`.
    """

    def remembering(_format: Format) -> Read:
        log = _Log()

        def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
            line = event_of(match[0])
            value, metadata, time = (line.get("value"), line.get("metadata"), line.get("time_ms"))
            if not keys and (line.get("key") != "tracked_stats" or not isinstance(value, dict)):
                return None
            metadata = metadata if isinstance(metadata, dict) else {}
            seconds = time / 1000 if is_number(time) else nan
            event = _Event(line.get("key"), value, metadata, rank, seconds)
            log.take(event)
            counted = count(log, event)
            if counted is None or isnan(seconds):
                return None
            iteration, rate, *paused = counted
            so_far = metadata.get(samples)
            return Record(
                iteration,
                rank=rank,
                time=seconds,
                tick=0.001,
                rate=rate,
                evaluated=sum(paused),
                evaluations=sum(map(bool, paused)),
                text=match[0],
                counts=(("samples", so_far),) if is_number(so_far) else (),
            )

        return read

    of_keys = rf':::MLLOG \{{(?>[^\r\n]{{0,300}}?"key": ?")(?:{keys})[^\r\n]{{0,2000}}\}}{{END}}'
    return Format(
        name=name,
        system="mlperf",
        marker=MARK if keys else b'"tracked_stats"',
        pattern=of_keys if keys else EVENT_LINE,
        clock=MILLISECONDS,
        remembering=remembering,
        facts=facts,
        prints=Prints.RUN_STOP | prints,
        **more,
    )


TRACKED = _format(
    "mlperf",
    _tracked,
    samples="samples_count",
    step_is=("global_batch", "sample", "epoch_trained", "epoch_samples", "epoch_batches"),
    facts=_facts,
    precedence=1,
    prints=Prints.RUNS_AHEAD,  # as MXNet's image classification on hundreds of nodes
)
"""Submissions count samples, steps or epochs, under any of four names.

    :::MLLOG {"time_ms": 1719843792116, "key": "tracked_stats", "value": {"throughput": 14214.6}, "metadata": {"epoch_num": 799502}, ..}
"""

BLOCKS = _format(
    "mlperf-blocks",
    _blocks,
    r'global_batch_size"|max_sequence_length"|submission_benchmark"|'
    r'[a-z_]{1,40}"[^\r\n]{0,2000}?"(?:samples_count|step_num|first_epoch_num)"',
    samples="samples_count",
    evaluates=rb'"key": ?"eval_accuracy"',
    precedence=4,
)
"""Since v4.0, NVIDIA's and others' stable_diffusion: blocks between two evaluations.

    :::MLLOG {"time_ms": 1715335350757, "event_type": "INTERVAL_START", "key": "block_start", "value": "training_step", "metadata": {"samples_count": 51200, ..}}

An iteration is a batch, whose size another event gives before. Habana's of v3.1 counts steps, as
`step_num`, and saves a checkpoint between some blocks: where more than a second lies between a stop and
the next start, it is left out, as an evaluation is. Google's gpt3 of v3.1, by PAX, counts tokens, as
`first_epoch_num`. Each of its blocks includes an evaluation whose start has no stamp, so it is refused.
"""

EVALUATIONS = _format(
    "mlperf-evaluations",
    _evaluations,
    'global_batch_size"|max_sequence_length"|train_samples"|submission_benchmark"|'
    'eval_start"|eval_accuracy"|eval_stop"',
    precedence=5,
)
"""Nothing but evaluations is stamped: HugeCTR's dlrm, openfold, tinycorp's bert, Habana's gpt3.

    :::MLLOG {"time_ms": 1745545498684, "event_type": "POINT_IN_TIME", "key": "eval_accuracy", "value": 0.41, "metadata": {"epoch_num": 299904, ..}}

What is called an epoch counts samples: it is read where it is as many steps of the global batch. For gpt3
it counts tokens, and is read where these are whole batches. For dlrm it is a share of the epoch's batches.
"""

LOSSES = _format(
    "mlperf-losses", _losses, 'global_batch_size"|train_loss"', samples="samples_count"
)
"""Language models since v4.0, and HPC's DeepCAM, which counts steps.

    :::MLLOG {"time_ms": 1775725581676, "event_type": "POINT_IN_TIME", "key": "train_loss", "value": 11.846, "metadata": {"samples_count": 80, "lr": 3.125e-06}}

These are llama2_70b_lora and llama31: AMD's documentation of its trainings; DeepCAM's
deepCam/driver/trainer.py.
"""

PASSES = _format(
    "mlperf-passes",
    _passes,
    'submission_benchmark"|throughput"|block_start"|epoch_start"',
    evaluates=rb'"key": ?"eval_accuracy"',
    step_is=("epoch_samples", "epoch_trained", "epoch_batches"),
    facts=_facts,
    precedence=4,
    prints=Prints.RUNS_AHEAD,
)
"""Starts of epochs or of blocks of epochs. Throughputs that some print are checked.

    :::MLLOG {"time_ms": 1684387859532, "event_type": "INTERVAL_START", "key": "block_start", "value": null, "metadata": {"first_epoch_num": 4, "epoch_count": 4, ..}}

v1.0 to v3.0, submissions of NVIDIA (rnnt), Habana, Google, Graphcore and Intel; Fujitsu's cosmoflow.
"""

SAMPLES = _format(
    "mlperf-samples",
    _steps_with_samples,
    samples="samples_count",
    facts=facts_of({"max_sequence_length": "sample_tokens"}),  # samples are packed to it
    counts_from=0,
)
"""Since v5.0: a loss every few steps, and at evaluations a throughput, which `mlperf` reads.

    :::MLLOG {"time_ms": 1760032496633, "key": "tracked_stats", "value": {"train_loss": 2.05}, "metadata": {"samples_count": 80, "step": 10, ..}, ..}

custom_callbacks.py of llama2_70b_lora, llama31_8b, llama31_405b and flux1.
"""

STEPS = _format(
    "mlperf-steps",
    _timed_steps,
    rate_times=("global_batch",),
    step_is=("global_batch", "sample", "token"),
    facts=facts_of({"global_batch_size": "global_batch", "max_sequence_length": "sample_tokens"}),
)
"""v3.0 to v5.0, custom_callbacks.py of NVIDIA's largest language models.

    :::MLLOG {"time_ms": 1744812678480, "key": "tracked_stats", "value": {"train_step_time": 54.7, "reduced_train_loss": 7.7}, "metadata": {"step": 1152.0, ..}, ..}

What is called `step` counts samples for llama31_405b and tokens for gpt3: the printed times of a step
decide.
"""
