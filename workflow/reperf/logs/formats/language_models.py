"""Small trainers of language models: most tell the time of every step."""

import re
from collections import defaultdict
from collections.abc import Iterator
from math import prod

from reperf.logs.clock import TRAINED, tick
from reperf.logs.facts import Fact, FactName
from reperf.logs.format import SEEN, Format, Prints, Read, Record, beyond, durations_since, facts_by

_COUNT = rb"(\d[\d,]{0,18})"


def _number(written: bytes) -> int:
    return int(written.replace(b",", b""))


_TOKENS = re.compile(rb"\btokens per iteration will be: (\d[\d,]{0,15})\s")
_SETTING = re.compile(
    rb"(?<!#)(?<!# )\b(block_size|batch_size|gradient_accumulation_steps) = "
    rb"(\d{1,9}(?: ?\* ?\d{1,9}){0,3})\s"
)
_UNSAID = {b"batch_size": 12, b"gradient_accumulation_steps": 5 * 8}
"""What train.py sets where neither configuration nor command line does."""


def _length_and_batch(head: bytes) -> Iterator[Fact]:
    """The length of a sequence and the batches that make up an iteration's tokens.

    Where a line that overrides a setting is lost, they do not: then none of them is believed.
    """
    printed = {name: prod(map(int, value.split(b"*"))) for name, value in _SETTING.findall(head)}
    tokens = {_number(match[1]) for match in _TOKENS.finditer(head)}
    length, settings = printed.get(b"block_size"), _UNSAID | printed
    if length and tokens == {length * prod(settings[name] for name in _UNSAID)} - {0}:
        yield "sample_tokens", length
        yield "batch_size", settings[b"batch_size"]
        yield "global_batch", tokens.pop() // length


NANOGPT = Format(
    name="nanogpt",
    pattern=r"\biter {ITERATION}: loss {NUMBER}, time {MILLISECONDS}ms(?:, mfu {NUMBER}%)?{END}",
    remembering=durations_since(newest=1),
    facts=_length_and_batch,
    # The time of the iteration after it holds it.
    evaluates=rb"\bstep \d{1,12}: train loss ",
    untimed="its times are those of single iterations, and not every iteration is printed",
    counts_from=0,
    prints=Prints.STEPS,
)
"""nanoGPT: the time of the iteration that a line is printed for.

    iter 2920: loss 3.9883, time 1099.34ms, mfu 15.34%

Iterations count from 0. Each is a step of the optimizer, and its time holds the evaluation before it.
By default every tenth is printed, whose time says nothing about those between: `--log_interval=1`
prints them all. The program prints how many tokens an iteration trains, and, where they are not the
defaults, the length of a sequence, the batch of a device and how many batches all devices accumulate:
the last that it prints is the one in use, and their product must be those tokens.

Source: github.com/karpathy/nanoGPT, train.py and configurator.py; lines as in its issues 110 and
215.
"""

_RANK = re.compile(rb"\bTokens / micro-batch / rank: (\d{1,9}) x (\d{1,9}) = " + _COUNT + rb"\s")
_ALL = re.compile(rb"\bTokens / micro-batch: " + _COUNT + rb"\s")
_STEP = re.compile(
    rb"\bTotal batch size " + _COUNT + rb" => gradient accumulation steps: (\d{1,9})\s"
)


def _batches(head: bytes) -> Iterator[Fact]:
    for rank in _RANK.finditer(head):
        batch, length = int(rank[1]), int(rank[2])
        if not batch or not length:
            continue
        yield "batch_size", batch
        yield "sample_tokens", length
        for everyone in _ALL.finditer(head):
            if not _number(everyone[1]) % (batch * length):
                yield "world_size", _number(everyone[1]) // (batch * length) or None
        for step in _STEP.finditer(head):
            if not _number(step[1]) % length:
                yield "global_batch", _number(step[1]) // length or None
                yield "accumulation", int(step[2]) or None


NANOCHAT = Format(
    name="nanochat",
    pattern=r"\bstep {ITERATION}(?:/{TOTAL})? \({NUMBER}%\) \| loss: {NUMBER} \| lrm: {NUMBER} \| "
    r"dt: {MILLISECONDS}ms \| tok/sec: {THOUSANDS} \| (?:bf16_)?mfu: {NUMBER}{END}",
    facts=_batches,
    rate_times=("samples_per_token",),
    counts_from=0,
    prints=Prints.STEPS,
)
"""nanochat: the time of every step of the optimizer, without evaluations, samples and checkpoints.

    step 00001/21400 (0.00%) | loss: 10.808654 | lrm: 1.00 | dt: 649.22ms | tok/sec: 807,569 | mfu: 35.64 | total time: 0.00m

Steps count from 0. The tokens a second are those of all devices. The program prints the length of a
sequence, the batch of a device and of all, in tokens, and how many batches it accumulates.

Source: github.com/karpathy/nanochat, scripts/base_train.py; lines as in its discussion 1.
"""

_UNTIMED = (0, 10)  # how many steps, at the start, are in no mean
_OFF = 0.5, 0.001
"""By how many steps, and by which share of them, a mean may be off, for it is rounded."""


def _by_mean(step: int, match: re.Match[bytes]) -> str:
    """What is wrong with a line whose time and mean are those of another number of steps.

    Where the time is in seconds, it begins long before the steps whose mean is printed.
    """
    if match["unit"] != b"ms" or not match["average"] or not (mean := float(match["average"])):
        return ""
    steps, (few, share) = float(match["time"]) / mean, _OFF
    off = few + share * step + 1 / mean  # times are rounded to milliseconds
    if any(abs(steps - (step - untimed)) <= off for untimed in _UNTIMED):
        return ""
    return (
        f"the line of step {step} says that {match['time'].decode()} ms were trained, at a mean of "
        f"{mean:g} ms a step: these are {steps:.6g} steps"
    )


def _unvalidated(_format: Format) -> Read:
    trained: defaultdict[tuple[int, ...], int] = defaultdict(int)

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        step = int(match["iteration"])
        if match["validated"] is None:
            trained[rank] = step
        elif trained[rank] == step > 0:
            return None
        return Record(
            iteration=step,
            rank=rank,
            time=float(match["time"]) * (0.001 if match["unit"] == b"ms" else 1.0),
            tick=0.001,
            text=match[0],
            fault=beyond(step, match["total"]) or _by_mean(step, match),
            counts=((SEEN, float(match["seen"])),) if match["seen"] else (),
        )

    return read


_GOLF = facts_by(
    step_tokens=r"\btrain_batch_tokens: ?(\d{1,12})\s",
    sample_tokens=(r"\btrain_seq_len: ?(\d{1,9})\s", r" kv_heads:\d{1,6} seq_len:(\d{1,9}) "),
    world_size=(
        r"\bworld_size:(\d{1,6}) (?:grad_accum_steps|train_batch_tokens):",
        r"  world_size: (\d{1,6})\s",
    ),
    accumulation=r"\bgrad_accum_steps: ?(\d{1,6})\s",
)
_SCHEDULED = re.compile(
    rb"(?i)\b\w{0,40}(?:seq|batch)\w{0,40}_(?:schedule|warmup|curriculum|ramp)\w{0,20}:"
    rb"(?!none|false|off|0\b|\s)"
)


_SPEEDRUN = re.compile(
    rb"\bB=(\d{1,6}) T=(\d{1,7}) ddp_world_size=(\d{1,6}) (?:grad_accum|train_accumulation)_steps=(\d{1,6})\s"
)


# The whole expression: "8 * 64 // 2" is no product.
_PRODUCT = rb"(\d{1,9}(?: ?\* ?\d{1,9}){0,4})[ \t]*(?:#|\r?$)"
_PROGRAM = re.compile(rb"^class Hyperparameters\b(.*?)^args = Hyperparameters\(\)\s", re.S | re.M)
_HYPERPARAMETER = re.compile(rb"^    (\w{1,40})(?: ?: ?int)? = " + _PRODUCT, re.M)
_STAGES = re.compile(
    rb"^    (?:train_bs_schedule: tuple = \((?P<tuple>[\d\s*,]{1,400})\)"
    rb"|TrainingStage\([^\r\n]{0,100}?batch_size=(?P<stage>[\d *]{1,80}),)", re.M
)  # fmt: skip
_LOADER = re.compile(
    rb"^train_(?:loader = distributed_data_generator\(args\.train_files, |batch_size = )"
    rb"(?:(world_size \* )args\.((?:train_)?seq_len)|args\.((?:train_)?batch_size))[,\s]", re.M
)  # fmt: skip
_WORLD = re.compile(rb"^assert world_size == (\d{1,6})[ \t]*(?:[#,]|\r?$)", re.M)
_ACCUMULATES = re.compile(
    rb"^train_accumulation_steps = args\.batch_size // .*"
    rb"(?:^assert train_accumulation_steps == 1\s| range\(1, ?train_accumulation_steps ?\+ ?1\):)",
    re.S | re.M,
)
"""How the oldest versions make up their global batch."""
_SET_ELSEWHERE = b"argparse", b"setattr(args", b"train_loader.send("
_SWEEP = re.compile(
    rb"^def distributed_data_generator\(filename_pattern: str, batch_size: int, seq_len=(\d{1,9})\):"
    rb".*?^batch_size = " + _PRODUCT + rb".*?^ *train_loader = distributed_data_generator\("
    rb"\"[^\"\r\n]{1,200}\", batch_size\)\s.*? with world_size[= ](\d{1,6})\s", re.S | re.M
)  # fmt: skip


def _product(written: bytes) -> int:
    return prod(map(int, written.split(b"*")))


def _of_program(head: bytes) -> Iterator[Fact]:
    """The batch in the program's own text, where it is a number that nothing else can set.

    Where it changes with the step, all its sizes are facts, which contradict each other.
    """
    for stage in _STAGES.finditer(head):
        sizes = filter(bytes.strip, (stage["tuple"] or stage["stage"]).split(b","))
        yield from (("step_tokens", _product(size)) for size in sizes)
    if match := _SWEEP.search(head):
        yield from (("sample_tokens", int(match[1])), ("step_tokens", _product(match[2])))
        yield "world_size", int(match[3])
    program = _PROGRAM.search(head)
    if not program or any(word in head for word in _SET_ELSEWHERE):
        return
    given = {name: _product(value) for name, value in _HYPERPARAMETER.findall(program[1])}
    given = {name: value for name, value in given.items() if b"\nargs.%s = " % name not in head}
    batch, length = given.get(b"batch_size"), given.get(b"sequence_length")
    if batch and length and _ACCUMULATES.search(head):
        yield from (("global_batch", batch), ("sample_tokens", length))
    loader = _LOADER.search(head)
    if not loader or not (tokens := given.get(loader[2] or loader[3])):
        return
    if loader[1]:
        yield from (("batch_size", 1), ("sample_tokens", tokens), ("accumulation", 1))
        yield from (("world_size", int(match[1])) for match in _WORLD.finditer(head))
    else:
        yield "step_tokens", tokens
        if b".split(args.seq_len)" in head:
            yield "sample_tokens", given.get(b"seq_len")


def _golf(head: bytes) -> Iterator[Fact]:
    """The batch of parameter-golf, unless a fork says that its sequences or batches change."""
    if b"distributed_data_generator" in head or b"train_accumulation_steps" in head:
        yield from _of_program(head)
    if b"train_batch_tokens:" in head and not _SCHEDULED.search(head):
        yield from _GOLF(head)
    names: tuple[FactName, ...] = ("batch_size", "sample_tokens", "world_size", "accumulation")
    for match in _SPEEDRUN.finditer(head):
        yield from zip(names, map(int, match.groups()), strict=True)


MODDED_NANOGPT = Format(
    name="modded-nanogpt",
    pattern=r"\bstep:{ITERATION}/{TOTAL} (?:(?P<validated>val_loss:){NUMBER} (?:val_[a-z]{1,20}_loss:{NUMBER} )*|train_loss:{NUMBER} )?"
    r"train_time:(?P<time>\d{1,12}(?:\.\d{1,6})?)(?P<unit>m?s) step_avg:(?:(?P<average>\d{1,9}(?:\.\d{1,6})?)ms|{NUMBER})"
    r"(?: tokens_seen:(?P<seen>\d\.\d{2}e\+\d{2}))?{END}",
    clock=TRAINED,
    remembering=_unvalidated,
    facts=_golf,
)
"""modded-nanogpt: the milliseconds of training so far, without those of its validations.

    step:21/1480 train_time:1566ms step_avg:142.33ms
    step:125/1480 val_loss:4.4183 train_time:16547ms step_avg:143.88ms

The clock stands still while it validates. Older versions set it back to 0 at the tenth step; some
print validations alone, whose times are seconds. One that follows the line of its own step says nothing
more. The log contains the program itself. The batch, in sequences or in tokens, is read from there if it
is a number that no argument changes. A log whose batch changes with the step is refused. Since May 2025, most sequences are of different lengths: with `--unit tokens`, tokens are
counted. OpenAI's parameter-golf prints its batch, in tokens, with the length of a sequence:

    world_size:8 grad_accum_steps:1
    train_batch_tokens:524288 train_seq_len:1024 iterations:20000 warmup_steps:20 max_wallclock_seconds:600.000
    step:9650/20000 train_loss:2.0183 train_time:419932ms step_avg:43.52ms

So does nanogpt-speedrun, whose lines count the tokens, in three digits: the batch must make as many.

    B=32 T=1024 ddp_world_size=2 grad_accum_steps=8 tokens_per_fwdbwd=524288 args.batch_size=512
    step:20/9664 train_loss:8.6986 train_time:27144ms step_avg:2714.35ms tokens_seen:1.05e+07 tokens/sec:3.86e+05

Source: github.com/KellerJordan/modded-nanogpt, train_gpt.py and the logs under records;
github.com/openai/parameter-golf, train_gpt.py, train_gpt_mlx.py, and
records/track_10min_16mb/2026-03-17_NaiveBaseline/train.log;
github.com/tyler-romero/nanogpt-speedrun, src/train_gpt2.py and logs.
"""

_OF_MINUTES = 3.1
"""The largest difference in seconds from a time that is printed in minutes with one decimal."""


def _by_mean_speed(_format: Format) -> Read:
    batch = 0

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        nonlocal batch
        if match["batch"]:
            batch = int(match["batch"])
            return None
        step, speed = int(match["iteration"]), float(match["rate"])
        if not batch or not speed:
            return None
        time, minutes = step * batch / speed, float(match["minutes"])
        fault = beyond(step, match["total"])
        if abs(time - 60 * minutes) > _OF_MINUTES:
            fault = fault or (
                f"the line of step {step} says {minutes:g} minutes of training, but at its speed "
                f"steps of {batch} tokens took {time:.6g} s"
            )
        return Record(step, rank, time=time, tick=time / speed, text=match[0], fault=fault)

    return read


PARAMETER_GOLF = Format(
    name="parameter-golf",
    marker=b"tok",  # in both lines
    signs=(b"m tok/s: ",),
    pattern=r"\btrain_batch_tokens: (?P<batch>\d{1,12})\s|(?<![\w/]){ITERATION}/{TOTAL} train_loss: {NUMBER} "
    r"train_time: (?P<minutes>\d{1,6}\.\d)m tok/s: {RATE}{END}",
    clock=TRAINED,
    remembering=_by_mean_speed,
    facts=_golf,
)
"""Most records of OpenAI's parameter-golf since April 2026: tokens a second since training began.

      train_batch_tokens: 786432
    500/20000 train_loss: 3.0229 train_time: 0.8m tok/s: 7991951

The speed, a mean, is printed in full, but the time in minutes with one decimal. So the time is computed
from the tokens so far and the speed, without validations. The printed time must agree with it.

Source: github.com/openai/parameter-golf, train_gpt.py and train_seed42.log in
records/track_10min_16mb/2026-04-01_Vocab4096_MLPMult4_WD085.
"""

BUILD_NANOGPT = Format(
    name="build-nanogpt",
    pattern=r"\bstep +{ITERATION} \| loss: {NUMBER} \| lr:? {NUMBER} \| norm: {NUMBER} \| "
    r"dt: {MILLISECONDS}ms \| tok/sec: {RATE}{END}",
    remembering=durations_since(newest=1),
    facts=facts_by(
        step_tokens=r"\btotal desired batch size: (\d{1,12})\s",
        accumulation=r"=> calculated gradient accumulation steps: (\d{1,6})\s",
    ),
    rate_times=("samples_per_token",),
    # The time of the step after it holds it.
    evaluates=rb"\b[Vv]alidation loss:? \d|\bHellaSwag accuracy: |\brank \d{1,6} sample \d",
    untimed="its times are those of single steps, and not every step is printed",
    counts_from=0,
    prints=Prints.STEPS,
)
"""build-nanogpt, Karpathy's lecture, and what people make of it: the time of every step of the optimizer.

    step    1 | loss: 9.650049 | lr 6.0000e-05 | norm: 9.5442 | dt: 2890.59ms | tok/sec: 181377.28

Steps count from 0; the time of a step holds the evaluation before it. The program prints how many tokens
a step trains, on all devices, and how many batches it accumulates; the length of a sequence no line
says: it follows from the batch that a user gives. The tokens a second are those of all devices.

Source: github.com/karpathy/build-nanogpt, train_gpt2.py; lines as in public notes on its lecture.
"""

LLM_C = Format(
    name="llm-c",
    marker=b" tok/s",
    pattern=r"\bstep +{ITERATION}/{TOTAL} \| loss {NUMBER} \({NUMBER}\)\| norm {NUMBER} \({NUMBER}\)\| "
    r"lr {NUMBER} \| {MILLISECONDS} ms \| [^|\r\n]{1,40} MFU \| {RATE} tok/s{END}",
    facts=facts_by(
        batch_size=r"\bbatch_size B=(\d{1,9}) \* seq_len T=",
        sample_tokens=r"\bbatch_size B=\d{1,9} \* seq_len T=(\d{1,9}) ",
        world_size=r" \* num_processes=(\d{1,9}) and total_batch_size=",
        accumulation=r"=> setting grad_accum_steps=(\d{1,9})\s",
    ),
    rate_times=("samples_per_token",),
    prints=Prints.STEPS,
)
"""llm.c: the time of every step of the optimizer, without validations, samples and checkpoints.

    step    1/10 | loss 11.032358 (+nanz)| norm 22.1414 (+nanz)| lr 8.57e-07 | 2575.63 ms | 39.0% bf16 MFU | 203557 tok/s

The tokens a second are those of all devices, as a moving average. The program prints its batch, the
length of a sequence, the number of processes and how many batches it accumulates.

Source: github.com/karpathy/llm.c, train_gpt2.cu; lines as in its discussion 677 and in the READMEs
of its forks.
"""

_LITGPT_BATCH = facts_by(
    batch_size=r"\bmicro_batch_size=(\d{1,9})\b", nodes=r"'num_nodes': (\d{1,6})\b"
)
_DEVICES = re.compile(rb"'devices': (\d{1,4})\b")
_LITGPT_WITH_NODES = re.compile(rb"'(?:access_token|optimizer)': ")
"""What only versions print that print a number of nodes, too."""


def _batch_and_devices(head: bytes) -> Iterator[Fact]:
    yield from _LITGPT_BATCH(head)
    for match in _DEVICES.finditer(head):
        if not (devices := int(match[1])):
            continue
        if b"'num_nodes': " in head:
            yield "devices_per_node", devices
        elif b"{'" in head and not _LITGPT_WITH_NODES.search(head):
            yield "world_size", devices  # an older version, whose first setting is not lost


LITGPT = Format(
    name="litgpt",
    pattern=r"\bEpoch \d{1,9} \| iter +{ITERATION} step \d{1,12} \| loss train: +{NUMBER}"
    r"(?:, val: +[-+.\w/]{1,40})? \| iter time: (?:{MILLISECONDS} ms(?: \(step\))?(?! \(step\)| remaining time)"
    r"|{NUMBER} ms(?: \(step\))? remaining time: [^\r\n]{1,40}){END}",
    remembering=durations_since(newest=1),
    facts=_batch_and_devices,
    untimed="its times leave out the loading of data, or are those of single batches of which not every "
    "one is printed",
)
"""LitGPT's finetuning: the time of every iteration, which is a batch of each device.

    Epoch 1 | iter 2 step 1 | loss train: 1.660, val: n/a | iter time: 548.72 ms (step)

An iteration is one of the batches that a step of the optimizer accumulates. Its time holds the loading
of its batch, but no validation. The lines of pretraining, which tell the remaining time, are recognised
and tell no time: theirs leave out the loading, and are those of the last batch of a step.

Source: github.com/Lightning-AI/litgpt, litgpt/finetune/lora.py and litgpt/pretrain.py; lines as in
its tutorials and in its issue 1607.
"""

LEVANTER = Format(
    name="levanter",
    pattern=r"\bProgress on:train {ITERATION}(?:\.00?)?it/[\d.]{1,6}[kMG]?it "
    r"rate:[^\s]{1,20} remaining:[\d:?]{1,20} elapsed:{ELAPSED} postfix:[^\r\n]{0,40}{END}",
    evaluates=rb"\bProgress on:eval ",
    prints=Prints.STEPS,
)
"""Levanter's progress lines, at most one a minute.

    Progress on:train 11.0it/18.0it rate:34.5s/it remaining:04:01 elapsed:17:46 postfix:loss=15.5

They count steps of the optimizer, from the thousandth on with three digits only: such lines say no
iteration, and are not read.

Source: github.com/marin-community/levanter, src/levanter/callbacks/_metrics.py, with
github.com/tradingstrategy-ai/tqdm-loggable, tqdm_loggable/tqdm_logging.py; lines as in
github.com/marin-community/marin.
"""

MAXTEXT = Format(
    name="maxtext",
    pattern=r"\bcompleted step: {ITERATION}, seconds: {DURATION}, TFLOP/s/device: {NUMBER}, "
    r"Tokens/s/device: {NUMBER},(?:[^\r\n]{0,200}? loss: {NUMBER})?",
    facts=facts_by(global_batch=r"Config param global_batch_size_to_train_on: (\d{1,9})\s"),
    # The seconds of the step after it hold it.
    evaluates=rb"\beval metrics after step: |\bCompleted eval step \d",
    counts_from=0,
    prints=Prints.STEPS,
)
"""MaxText: the seconds of every step, counted from 0.

    completed step: 29, seconds: 7.793, TFLOP/s/device: 328.139, Tokens/s/device: 4204.799, total_weights: 16777216, loss: 11.151

The global batch among the parameters that it prints holds what a step accumulates.

Source: github.com/AI-Hypercomputer/maxtext, MaxText/metric_logger.py; lines as in
github.com/AI-Hypercomputer/tpu-recipes.
"""

_HOUR = 3600.0
_NEEDED = ("batch", "sample", "time")


def _blocks(_format: Format) -> Read:
    blocks: defaultdict[tuple[int, ...], dict[str, str]] = defaultdict(dict)

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        key, value = next((key, text.decode()) for key, text in match.groupdict().items() if text)
        block = blocks[rank]
        if key == "batch":
            block.clear()
        # A number that comes again is of another batch, whose first line is lost.
        if key in block or (key != "batch" and not block):
            block.clear()
            return None
        block[key] = value
        if key != "time":
            return None
        known = blocks.pop(rank)
        if any(name not in known for name in _NEEDED):
            return None
        rate = float(known["rate"]) if "rate" in known else None
        counted = {"samples": "sample", "tokens": "token"}.items()
        return Record(
            int(known["batch"]) + 1,
            rank=rank,
            time=float(known["time"]) * _HOUR if rate else None,
            tick=tick(known["time"]) * _HOUR,
            rate=rate,
            text=match[0],
            counts=tuple((what, int(known[key])) for what, key in counted if key in known),
        )

    return read


COMPOSER = Format(
    name="composer",
    pattern=r"\bTrain (?:time/(?:batch: (?P<batch>\d{1,15})|sample: (?P<sample>\d{1,15})|token: (?P<token>\d{1,15})"
    r"|train: (?P<time>\d{1,15}\.\d{4}))|throughput/samples_per_sec: {RATE}){END}",
    clock=TRAINED,
    remembering=_blocks,
    facts=facts_by(global_batch=r"\bglobal_train_batch_size: (\d{1,9})\s"),
    untimed="it prints no speed that shows in which unit its time is",
)
"""Composer's console logger, as of LLM Foundry: what a batch measured, a line each.

    [batch=20/20]:
    Train time/batch: 19
    Train time/sample: 38
    Train time/token: 38912
    Train throughput/samples_per_sec: 0.2170
    Train time/train: 0.0536

The batches, samples and tokens are those before the batch, of all devices. The time is that of training
so far, with this batch and without evaluations, in hours of four digits, thus in steps of 0.36 s. That
these are hours the log does not say: the speed must agree, and a time without one is not taken.

Source: github.com/mosaicml/composer, composer/loggers/console_logger.py and
composer/callbacks/speed_monitor.py; lines as in AMD's blog on MPT-30B and in the logs of users.
"""
