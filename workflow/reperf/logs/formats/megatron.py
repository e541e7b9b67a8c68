"""Trainers of large language models on many devices."""

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from math import floor, log10, prod

from reperf.logs.clock import Clock, tick
from reperf.logs.facts import AMP_IN_BF16, LARGEST_FACT, Fact
from reperf.logs.format import Format, Prints, Read, Record, facts_by, read_groups

# What is between is of this iteration: a line that broke off may go on with another one's. One fork
# misspells "global".
_BEGINNING = (
    r"\biteration +{ITERATION}/ *{TOTAL} \|(?: consumed samples: +{SAMPLES} \|)?"
    r"(?:(?!iteration +\d)[^\r\n]){0,200}?elapsed time per iteration "
)
_REST = (
    r" \|[^\r\n]{0,400}?glo(?:ba|ab)l batch size: +{GLOBAL_BATCH} \|"
    r"(?:[^\r\n]{0,400}?loss: {NUMBER} \|)?"
)
_ARGUMENTS = facts_by(
    print_every=r"\blog_interval \.{1,60} (\d{1,9})\s",
    sample_tokens=r"\bseq_length \.{1,60} (\d{1,9})\s",
)

MEGATRON = Format(
    name="megatron",
    pattern=_BEGINNING + r"\(ms\): *{MILLISECONDS}(?:/{NUMBER})?" + _REST,
    # In older versions the time goes on.
    evaluates=rb"\bvalidation loss at iteration \d",
    facts=_ARGUMENTS,
    prints=Prints.EVENLY,
)
"""Megatron-LM, Megatron-DeepSpeed and their kin: the mean time of an iteration since the last line.

    [2025-05-27 15:23:07] iteration        1/    24000 | consumed samples:          1024 | elapsed time per iteration (ms): 271607.0 | learning rate: 1.500000E-06 | global batch size:  1024 | lm loss: 1.192634E+01 | ..

The time stamp, whole seconds, came in 2023. An iteration is a step of the optimizer: its global
batch holds all that it accumulates, and every line says it; the samples consumed tell whether it
grew. A mean of all lines may follow the elapsed time, after a slash.

Source: github.com/NVIDIA/Megatron-LM, megatron/training/training.py; lines as in OpenSeek's
documentation, github.com/FlagAI-Open/OpenSeek.
"""

MEGATRON_DEEPSPEED = Format(
    name="megatron-deepspeed",
    system="megatron",
    pattern=_BEGINNING
    + r"\(s\): *{DURATION}"
    + _REST
    + r"(?:[^\r\n]{0,400}? samples per second: {RATE} \|)?",
    evaluates=rb"\bvalidation loss at iteration \d",
    facts=_ARGUMENTS,
    prints=Prints.EVENLY,
)
"""BigScience's Megatron-DeepSpeed: the same line in seconds, with the speed of all devices.

    [default7]: iteration    12695/  115311 | consumed samples:      9841584 | consumed tokens:  20155564032 | elapsed time per iteration (s): 105.22 | learning rate: 5.969E-05 | global batch size:  2048 | lm loss: 2.463556E+00 | grad norm: 0.174 | num zeros: 0.0 | number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: 19.463 | TFLOPs: 149.02 |

Source: github.com/bigscience-workshop/Megatron-DeepSpeed, megatron/training.py; lines as in the chronicles
of BLOOM's training, github.com/bigscience-workshop/bigscience, and in the documentation of JSC's NLP
benchmark.
"""

_DEEPSPEED = facts_by(
    global_batch=r"\btrain_batch_size \.{1,60} (\d{1,9})\s",
    batch_size=(
        r"\btrain_micro_batch_size_per_gpu  (\d{1,9})\s",
        r"\bcmd = [^\r\n]{1,4000}? --per_device_train_batch_size[ =](\d{1,9})\s",
    ),
    accumulation=(
        r"\bgradient_accumulation_steps \.{1,60} (\d{1,9})\s",
        r"\bcmd = [^\r\n]{1,4000}? --gradient_accumulation_steps[ =](\d{1,9})\s",
    ),
    replicas=r":print\]   world_size \.{1,60} (\d{1,9})\s",
    world_size=r"\bdist_world_size=(\d{1,9})\s",
)
_SHARES_MODEL = re.compile(rb"\b(?:autotp_size=|sequence_parallel_size[ .=]{1,60})0*(?:[2-9]|1\d)")
_HALF = re.compile(rb":print\]   (?:(fp16)|bfloat16)_enabled \.{1,60} True\s")


def _configuration(head: bytes) -> Iterator[Fact]:
    """The configuration that DeepSpeed prints, whose world size counts the replicas of the model."""
    facts = list(_DEEPSPEED(head))
    yield from facts
    if not any(name == "world_size" for name, _ in facts) and not _SHARES_MODEL.search(head):
        yield from (("world_size", value) for name, value in facts if name == "replicas")
    yield from (("precision", "fp16" if half[1] else AMP_IN_BF16) for half in _HALF.finditer(head))


DEEPSPEED = Format(
    name="deepspeed",
    pattern=r"\[{DATE}\] \[INFO\] \[timer\.py:\d{1,9}:stop\] "
    r"(?:epoch=\d{1,9}/micro_step=\d{1,12}/global_step=|\d{1,9}/){ITERATION}, "
    r"RunningAvgSamplesPerSec={NUMBER}, CurrSamplesPerSec={RATE}, MemAllocated=",
    evaluates=rb"\*{3,} (?:Running )?[Ee]valuat",
    facts=_configuration,
    precedence=6,
)
"""DeepSpeed: the lines of its own timer, where a program prints no others.

    [2023-11-07 01:55:23,714] [INFO] [timer.py:260:stop] epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=25.025771473496132, CurrSamplesPerSec=25.704280480541442, MemAllocated=4.32GB, MaxMemAllocated=38.49GB

An iteration is a step of the optimizer. The second speed is that of the newest one, from its first forward
pass on: it counts no wait for data and no evaluation, so that a window with more of them than a trifle is
refused. The command that its launcher prints may say the batch of a device. The configuration that it prints
says the batch, the devices and, unless it is that of the program around it, the precision:

    [2024-03-08 16:33:18,189] [INFO] [config.py:1000:print]   world_size ................... 4

Source: github.com/deepspeedai/DeepSpeed, deepspeed/utils/timer.py; lines as in its issues and in
those of programs that use it.
"""


def _seconds(stamp: str) -> float:
    # Without a year, any leap year will do: across New Year, time steps back, and is refused.
    day, time = stamp.split(" ")
    written = stamp if day.count("/") == 2 else f"{day}/2000 {time}"
    return datetime.strptime(written, "%m/%d/%Y %H:%M:%S").replace(tzinfo=UTC).timestamp()


NANOTRON = Format(
    name="nanotron",
    pattern=r"\b(?P<time>\d\d/\d\d(?:/\d{4})? \d\d:\d\d:\d\d) \[INFO[^\]\r\n]{0,120}\]: "
    r"iteration: {ITERATION} / {TOTAL} \| consumed_tokens: {NUMBER} \| "
    r"(?:elapsed_)?time_per_iteration_ms: {NUMBER} \|(?:[^\r\n]{0,200}? lm_loss: {NUMBER} \|)?",
    clock=Clock("", _seconds, title="time stamps, in whole seconds"),
    facts=facts_by(
        global_batch=r"\[Start training\] [^\r\n]{1,120}\| global_batch_size: (\d{1,9}) \|",
        sample_tokens=r"\[Start training\] [^\r\n]{1,160}\| sequence_length: (\d{1,9}) \|",
    ),
    prints=Prints.STEPS,
)
"""nanotron: lines with time stamps, in whole seconds, of steps of the optimizer.

    10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: 327281 / 378950 | consumed_tokens: 85.8G | elapsed_time_per_iteration_ms: 11.5K | tokens_per_sec: 22.8K | tokens_per_sec_per_gpu: 11.4K | global_batch_size: 64 | lm_loss: 2.38 | lr: 1e-05 | model_tflops_per_gpu: 38.3 | hardware_tflops_per_gpu: 38.3 | grad_norm: 1.25
    12/21 01:39:51 [INFO|DP=0|TP=0|lrdn0007]: iteration: 211364 / 1500000 | consumed_tokens: 480B | time_per_iteration_ms: 8.79K | tokens_per_sec: 182K | tokens_per_sec_per_gpu: 699 | global_batch_size: 1.6M | ..

All that a line says is rounded to three digits. The line that the training starts with says its batch
and the length of a sequence whole:

    [Start training] datetime: 2024-08-31 14:37:26.889276 | mbs: 2 | grad_accum: 1 | global_batch_size: 2 | sequence_length: 256 | train_steps: 15 | start_iteration_step: 0 | consumed_train_samples: 0

Source: github.com/huggingface/nanotron, src/nanotron/trainer.py and src/nanotron/logging/base.py;
lines as in its issue 390 and in public documentation of trainings.
"""

_DIGITS = 4


def _of_four_digits(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    record, seconds = read_groups(NEMO, match, rank), float(match["duration"])
    if record is None or not 0 < seconds < LARGEST_FACT:
        return None
    return record._replace(tick=10.0 ** (floor(log10(seconds)) + 1 - _DIGITS))


NEMO = Format(
    name="nemo",
    pattern=r"\bTraining epoch \d{1,9}, iteration \d{1,12}/\d{1,12} \|(?:[^\r\n]{0,200}?"
    r"\bglobal_batch_size: {GLOBAL_BATCH} )?[^\r\n]{0,200}?\bglobal_step: {ITERATION} \|[^\r\n]{0,400}?\btrain_step_timing in s: {DURATION}{END}"
    r"(?:[^\r\n]{0,200}?consumed_samples: {SAMPLES}\s)?",
    read=_of_four_digits,
    counts_from=0,
)
"""NVIDIA NeMo 2's lines, and those of what is built on it: every step of the optimizer, timed.

    Training epoch 0, iteration 45/99 | lr: 6.897e-06 | global_batch_size: 128 | global_step: 45 | reduced_train_loss: 11.96 | train_step_timing in s: 6.08 | consumed_samples: 5888

Steps count from 0; global_step goes on where an epoch begins again. The samples consumed are those
of all ranks. Times have four digits, of which zeros at the end are left out.

Source: github.com/NVIDIA/NeMo, nemo/lightning/pytorch/callbacks/progress_printer.py; lines as in
the documentation of github.com/aws-samples/awsome-distributed-training, ESM2.
"""


_MIXED = (
    "the tokens of step {} do not follow its line: the lines of several ranks are mixed without "
    "labels, or some are lost"
)


class _Gathered:
    """The values that the lines of a step print in turn, and the step before it."""

    def __init__(self) -> None:
        self.step: Record | None = None
        self.before: Record | None = None
        self.values: dict[str, bytes] = {}

    def begin(self, step: Record | None) -> None:
        """Take the line that names a step."""
        if step and self.step:
            step = step._replace(fault=step.fault or _MIXED.format(self.step.iteration))
        self.step, self.values = step, {}

    def record(self) -> Record | None:
        """The step, once all its values are read.

        With paces, it has a time if the step before it is known. If every step is printed, several may
        have one stamp, so each one's own pace gives its time. Otherwise the stamp is that of the step's
        end, unless several steps share it.
        """
        step, before = self.step, self.before
        assert step
        self.before, self.step = step, None
        tokens = self.values["tokens"].replace(b",", b"")  # from 10^9 on, four digits and a letter
        step = step._replace(counts=(("tokens", float(tokens)),) if tokens.isdigit() else ())
        if "paces" not in self.values:
            return step
        if before is None or not (pace := float(self.values["paces"])):
            return None
        steps, seconds = step.iteration - before.iteration, (step.time or 0) - (before.time or 0)
        if steps == 1:
            finest = tick(self.values["paces"].decode())
            return step._replace(time=None, duration=1 / pace, tick=finest / pace**2)
        if steps > 1 and seconds * pace < steps / 2:
            fault = f"step {step.iteration} is stamped together with others"
            step = step._replace(fault=step.fault or fault)
        return step


def _with_metrics_after(log_format: Format) -> Read:
    ranks: defaultdict[tuple[int, ...], _Gathered] = defaultdict(_Gathered)
    names = {"paces", "tokens"} & {*log_format.line.groupindex}

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        gathered = ranks[rank]
        if match["iteration"]:
            gathered.begin(read_groups(log_format, match, rank))
        elif gathered.step:
            gathered.values |= {name: value for name in names if (value := match[name])}
            return gathered.record() if len(gathered.values) == len(names) else None
        return None

    return read


OLMO = Format(
    name="olmo",
    marker=b"=",  # in both lines
    signs=(b"olmo.train:",),
    pattern=r"\b{DATE}\]?\s[^\r\n]{0,120}?\bolmo\.train:\d{1,6}\b[^\r\n]{0,60}?\[step={ITERATION}/{TOTAL}[\],]"
    r"|\bthroughput/total_tokens={TOKENS}{END}",
    remembering=_with_metrics_after,
    evaluates=rb"\bRunning evaluation for '|\[eval_step=\d",
    prints=Prints.STEPS,
)
"""OLMo's first trainer: a line with a time stamp and the step, then lines of what it measured.

    2024-08-06 10:00:05.520 host:0  olmo.train:908  INFO    [step=2/739328,epoch=0]
    throughput/total_tokens=2,097,152
    [2024-04-17 09:42:38] INFO     [olmo.train:816, rank=0] [step=2/739328]

Steps are those of the optimizer. The tokens are those that all devices have trained on so far; the
batch in sequences no line says.

Source: github.com/allenai/OLMo, olmo/train.py; lines as in its issue 692 and in public notes of a
training on two nodes.
"""


OLMO_CORE = Format(
    name="olmo-core",
    marker=b"=",  # in all three lines
    signs=(b"olmo_core.",),
    pattern=r"\b{DATE}\s[^\r\n]{0,200}?\[step={ITERATION}/(?:{TOTAL}|\?\?\?),epoch=\d{1,6},eta=[^\]\r\n]{1,60}\]"
    r"|\bthroughput/(?:device/BPS={PACES}|total tokens=(?P<tokens>[\d.,]{1,20}[BTPE]?)){END}",
    remembering=_with_metrics_after,
    evaluates=rb"\bRunning [^\r\n]{1,60} evals\.\.\.|\[eval=[^\r\n]{1,80},step=\d",
    prints=Prints.STEPS,
)
"""OLMo-core: a line with a time stamp and the step, then lines of what was measured, in any order.

    2026-08-08 12:01:00.231 host:0  olmo_core.train.callbacks.console_logger:76  INFO    [step=100/2000,epoch=1,eta=5h11m]
    throughput/device/BPS=2.137
    throughput/total tokens=52,428,800

BPS is the speed of that step alone, in steps a second. By default every fifth step is printed, when the
trainer gathers what it has measured since the last printed step: the stamp is the end of that step. If
every step is printed, five have the same stamp, and each one's own speed gives its time. Lines without an
estimate of the remaining time belong to steps whose work may still be queued: they are not read.

Source: github.com/allenai/OLMo-core, console_logger.py and speed_monitor.py in
src/olmo_core/train/callbacks, and src/olmo_core/train/trainer.py; no public log was found.
"""

_BATCH = facts_by(
    global_batch=r"local batch size \d{1,9}, global batch size (\d{1,9}),",
    sample_tokens=r", global batch size [^\r\n]{1,80}, sequence length (\d{1,9}),",
)
_MESH = re.compile(
    rb"\bBuilding (?:\d-D device mesh with \[[^\]\r\n]{1,200}\], \[(?P<sizes>[\d, ]{1,99})\]"
    rb"|device mesh with parallelism: (?P<named>pp=\d{1,9}, dp_replicate=\d{1,9}, "
    rb"dp_shard=\d{1,9}, cp=\d{1,9}, tp=\d{1,9}),)"
)


def _batch_and_mesh(head: bytes) -> Iterator[Fact]:
    yield from _BATCH(head)
    for match in _MESH.finditer(head):
        yield "world_size", prod(map(int, re.findall(rb"\d+", match["sizes"] or match["named"])))


TORCHTITAN = Format(
    name="torchtitan",
    marker=b"GiB(",
    pattern=r"\[titan\] {DATE} - \w{1,40} - INFO - step: *{ITERATION} +"
    r"loss: *{NUMBER} [^\r\n]{0,200}?memory: *{NUMBER}GiB\({NUMBER}%\)  (?:tps: *{THOUSANDS}\s)?",
    evaluates=rb" - INFO - validate step: ",
    facts=_batch_and_mesh,
    rate_times=("world_size", "samples_per_token"),
    prints=Prints.STEPS,
)
"""torchtitan: lines with time stamps, of steps of the optimizer.

    [rank0]:[titan] 2025-06-04 08:52:10,224 - root - INFO - step: 20  loss:  8.9196  memory: 30.99GiB(32.62%)  tps: 7,022  tflops: 406.65  mfu: 41.12%

It prints step 1, and then every so many. A step holds all that it accumulates, as the global batch
does that the trainer prints at its start (since 2025). tps counts tokens since the line before, of one
device: with the sequences' length and the mesh of devices, it checks the stamps.

Source: github.com/pytorch/torchtitan at 00fbaaf, torchtitan/components/metrics.py; lines as in
PyTorch's and AMD's documentation.
"""
