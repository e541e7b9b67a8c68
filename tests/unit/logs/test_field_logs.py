"""What the logs of the field do that steady ones do not, line by line as they do it.

Each log here is written after real ones; each number is reckoned beside it from the lines.
"""

import re
import sys
from functools import partial

import pytest
from reperf.logs.formats import formats

from tests.unit.logs.asking import (
    REAL,
    case,
    cases,
    check,
    measure,
    measure_one,
    measure_written,
    runs_written,
)
from tests.unit.logs.mlperf_lines import HEAD, STOP, evaluation, event, says, tracked
from tests.unit.logs.written import GLOBAL_BATCH, STYLES, dll, printed, uneven, written

EIGHT = (("nodes", 1), ("devices_per_node", 8))
FOUR = (("nodes", 2), ("devices_per_node", 2))
EVALUATED = "evaluations lie in the window"
MIXED = "the lines of several ranks are mixed without labels"


# NVIDIA's BERT


def bert(numbers: object, each: float = 4.0) -> list[str]:
    """The lines of these iterations, each so many seconds after the one before."""
    return printed("ngc-pytorch-bert", ((n, each * at, 1) for at, n in enumerate(numbers)))


def skipping(*again: int, first: tuple[int, ...] = (1,)) -> list[str]:
    """Loss scaling skips steps, and their numbers are printed again."""
    return bert([*first, *sorted([*range(2, 131), *again])])


COMMAND = (
    "+ python3 -m torch.distributed.launch --nnodes=1 --nproc_per_node=8 run_pretraining.py "
    "--train_batch_size=8448 --max_steps=20 --gradient_accumulation_steps=88 --do_train"
)
ARGUMENTS = (
    f'{dll(0)} PARAMETER Config : ["Namespace(do_train=True, gradient_accumulation_steps=88, '
    'n_gpu=1, train_batch_size=96, warmup_proportion=0.2843)"] '
)
RUN, SLOW = bert(range(1, 130)), bert(range(1, 20), 54.9)
NODES = (("nodes", 4), ("devices_per_node", 8))
PER_DEVICE, WHOLE = (("batch_size", 96), *NODES), (("global_batch", 3072), *NODES)
UNACCUMULATED, BATCHES = (("accumulation", 1),), (PER_DEVICE, WHOLE)
NOT_WHOLE = "the global batch of 3072 by the command line is not 88 batches"
BY_LOG = "batch size per device is 96 by the log, "
B48, B24 = (("batch_size", 48),), (("batch_size", 24),)
UNTOLD = [ARGUMENTS, *bert((0, 0, 0, *range(1, 20)))]
AT_ODDS = [
    COMMAND.replace("--train_batch_size=8448 ", ""),
    ARGUMENTS,
    ARGUMENTS.replace("=96", "=48"),
    *SLOW,
]
SKIPS = partial(case, facts=(("batch_size", 8), *EIGHT, *UNACCUMULATED))
SKIPPED = "..steps in the window were skipped, as loss scaling does, or the lines of several ranks"


@cases(
    # On 32 GPUs in PaddlePaddle/Perf, whose logs do not hold the command.
    *(case(f"{one[0][0]}", RUN, "..; allowed: --accumulation", facts=one) for one in BATCHES),
    *(
        case(f"{one[0][0]}, 1", RUN, facts=one + UNACCUMULATED, throughput=3072 / 4)
        for one in BATCHES
    ),
    case("no whole batches", RUN, NOT_WHOLE, facts=(*WHOLE, ("accumulation", 88))),
    case(
        "the command says what the arguments say",
        ["+ train_batch_size=8448", COMMAND, ARGUMENTS, *SLOW],
        ends=(1, 19),
        throughput=pytest.approx(8 * 8448 / 54.9, rel=1e-4),
    ),
    case("the command is enough", [COMMAND, *SLOW], ends=(1, 19), global_batch=8 * 8448),
    case("at odds", AT_ODDS, f"{BY_LOG}48 by the log; --batch-size says which is right"),
    case("decided", AT_ODDS, ends=(1, 19), facts=B48, global_batch=8 * 48 * 88),
    case("wrongly", AT_ODDS, f"{BY_LOG}24 by the command line", facts=B24),
    # What nobody says is missed before a window is.
    case("untold", UNTOLD, "..; allowed: --topology, or --global-batch", wide=True),
    case("told", UNTOLD, wide=True, facts=EIGHT, first=1),
    *(
        SKIPS(f"printed again outside the window: {again}", skipping(*again), throughput=64 / 4)
        for again in [(2, 5, 5), (120,), (125,), (19,)]
    ),
    # NVIDIA prints the count before it knows which steps were skipped.
    *(
        SKIPS(f"a count that goes back by one: {first}", skipping(first=first), throughput=64 / 4)
        for first in [(1, 1, 1, 1), (0, 1, 1, 1, 0, 0, 0, 1, 1)]
    ),
    *(
        SKIPS(f"printed again in the window: {again}", skipping(*again), SKIPPED)
        for again in [(20,), (60, 60), (119,)]
    ),
    SKIPS(
        "every number printed again",
        skipping(*range(2, 131), first=(1, 1)),
        f"iteration 20 is printed 2 times: {MIXED}",
    ),
)
def test_nvidias_bert(log, how, reason, expected):
    check(measure_one(log, **how), reason, **expected)


def test_a_count_that_begins_again_behind_new_arguments_is_another_run():
    lines = [*bert((1, 2)), ARGUMENTS, *(x.replace("14:", "15:") for x in bert(range(1, 131)))]
    facts = (*EIGHT, ("batch_size", 96), ("accumulation", 88))
    assert [one.status for one in measure(lines, facts=facts)] == ["refused", "ok"]


def test_a_skipped_step_is_known_where_its_line_is_lost():
    lines = [
        line + f" skipped_steps : {skipped} "
        for line, skipped in zip(bert((1, 2, 5, 6), 40), (8, 9, 9, 10), strict=True)
    ]
    facts = (("global_batch", 64), ("accumulation", 1))
    check(measure_one(lines, ends=(2, 5), facts=facts), throughput=3 * 64 / 40)
    reason = "the log counts 1 skipped steps in the window, as loss scaling does"
    check(measure_one(lines, ends=(2, 6), facts=facts), reason)


# Lines of MLPerf's among HugeCTR's, of which 100 iterations take 0.3675 s


def hugectr(at: int = 0, *between: str) -> list[str]:
    tens = printed("hugectr-wide-deep", ((i, i, 32 / 0.03675) for i in range(100, 5001, 100)))
    lines = [line.replace("(10 iters)", "(100 iters)") for line in tens]
    return [*lines[:at], *between, *lines[at:]]


BATCH = event("global_batch_size", 28000)
# As `tail` leaves it: the first line's seconds are those of the evaluation, too.
LEFT = [BATCH, *evaluation(0, 300), *hugectr()[20:]]
HELD = [*hugectr(20, *evaluation(0, 9000)), BATCH]
TAKING = f"{EVALUATED} and take 9 of its 14.3325 s: the first between the iterations 2000 and 2100"


OTHER = "global batch is 28000 by the log, 55296 by the command line"
AT = {at: hugectr(at, BATCH) for at in (0, 3, 50)}


@cases(
    *(case(f"a batch at {at}", AT[at], ends=(100, 300), global_batch=28000) for at in AT),
    *(case(f"another at {at}", AT[at], OTHER, facts=(("global_batch", 55296),)) for at in AT),
    case("an evaluation", HELD, TAKING, ends=(100, 4000), widest=(2100, 5000)),
    case("behind it", HELD, ends=(2100, 5000)),
    # Whether the printed durations hold it or not.
    case("of a trifle", [*hugectr(20, *evaluation(0, 10)), BATCH], ends=(100, 4000), evaluations=0),
    case("before the first line", LEFT, f"{EVALUATED} and take 0.3 of its ", ends=(2000, 2300)),
    case("before the window", LEFT, ends=(2100, 2300)),
)
def test_mlperfs_lines_among_others(log, how, reason, expected):
    check(measure_one(log, **how), reason, **expected)


def test_a_window_is_proposed_only_where_all_of_the_log_was_read():
    lines = [*HEAD, *(tracked(n, n * 1000, 56.0) for n in range(50, 200_000, 50)), STOP]
    lines[3000:3000] = evaluation(0, 99_000_000)
    check(measure_one(lines, ends=measure_one(lines).widest))


@pytest.mark.parametrize(("name", "noise"), [("mllog", 100_000), ("mlperf", 0)])
def test_the_end_of_a_run_is_seen_before_one_more_record_of_a_long_log(name, noise):
    lines = written(name, 40_000)[:-1]
    lines[-1:] = [STOP, "x" * noise, lines[-1]]
    check(measure_one(lines, log_format=name, facts=FOUR))


class TestALogOfTooManyLines:
    """One that prints 600 of them, where 500 are kept."""

    LINES = written("oneflow-wide-deep", 20 * 600)

    @pytest.fixture(autouse=True)
    def few_lines(self, monkeypatch):
        monkeypatch.setattr("reperf.logs.logged_runs.MOST_RECORDS", 500)

    def test_asks_for_a_nearer_end(self):
        found = measure_one(self.LINES, ends=(20, 20 * 590))
        check(found, "..choose a nearer one with --window FIRST:LAST")
        check(measure_one(self.LINES))

    @pytest.mark.parametrize("block", [1 << 10, 1 << 16], ids=["skipped", "read"])
    def test_is_measured_in_the_widest_window_of_those_that_are_kept(self, block, monkeypatch):
        monkeypatch.setattr("reperf.logs.log_file.SMALLEST_CHUNK", block)
        found = measure_one(self.LINES, widest=True)
        check(found, first=20, last=20 * 500, widest=(20, 20 * 500), last_printed=20 * 600)
        check(measure_one(self.LINES, ends=found.widest), throughput=found.throughput)

    def test_hears_a_line_that_steps_back_into_the_window(self):
        other = self.LINES[-400].replace(".", ".1")
        lines = [*self.LINES[:-10], other, *self.LINES[-10:]]
        check(measure_one(lines, widest=True), f"..{MIXED}")


# What the head of a log says


PRINTED = "[2024-03-08 16:33:18,189] [INFO] [config.py:1000:print]   "
LAUNCH = "LAUNCH INFO 2023-07-28 07:49:49,627 "
SCRIPT = "training_script_args: ['-o', 'DataLoader.Train.sampler.batch_size=8', '-o', 'x=8']"
TRAINER = tuple(STYLES["huggingface"].head)
DEEPSPEED = (
    f"{PRINTED}bfloat16_enabled ............. False",
    f"{PRINTED}fp16_enabled ................. True",
    f"{PRINTED}gradient_accumulation_steps .. 2",
    f"{PRINTED}train_batch_size ............. 32",
    f"{PRINTED}train_micro_batch_size_per_gpu  4",
    f"{PRINTED}world_size ................... 4",
)
HEADS = {
    "tf2-bert": ("I0904 12:00:00.1 1 a.py:1] Global batch size: 4096",),
    "tf2-resnet": ("Global batch size: 32",),
    "tf1-resnet": ("Num GPUs 4", "Per-GPU Batch Size 8"),
    "tf1-bert": ("INFO:tensorflow:  train_batch_size: 2", "  num_accumulation_steps: 4"),
    "hugectr": ("[main]: Training batchsize: 32, evaluation batchsize: 9",),
    "paddle": (f"{LAUNCH}devices: 0,1", f"{LAUNCH}nnodes: 2", LAUNCH + SCRIPT),
    "solver": ("+ python train_mlperf.py SOLVER.IMS_PER_BATCH 96 TEST.IMS_PER_BATCH 8",),
    "solver, quoted": ("+ ['SOLVER.IMS_PER_BATCH', '96', 'TEST.IMS_PER_BATCH', '8']",),
    "scaled": ("IMS_PER_BATCH: 32", "Auto-scaling the config to batch_size=64, lr=0.08"),
    "deepspeed": DEEPSPEED,
    "in bf16": tuple(line.replace("fp16", "bfloat16") for line in DEEPSPEED[1:]),
    # The configuration's world size counts replicas of a model, the launcher's its devices.
    "launched": (
        "[2024-03-08 16:33:10,1] [INFO] [launch.py:163:main] dist_world_size=8",
        *DEEPSPEED,
    ),
    "shared": (f"{PRINTED}tensor_parallel_config ....... autotp_size=2", *DEEPSPEED),
    "command": ("cmd = deepspeed main.py --x 1 --per_device_train_batch_size 8 --seed 1",),
    "trainer": TRAINER,
    # It may have several devices.
    "one process": tuple(line.replace("device = 8", "device = 32") for line in TRAINER),
    "commas": tuple(line.replace("= 32", "= 3,200").replace("= 8", "= 800") for line in TRAINER),
    "half": ("bf16=False,", "fp16=True,", *TRAINER),
}
OF_HEADS = """\
tensorflow2-bert         | tf2-bert       |                          | 4096
tensorflow2-resnet50     | tf2-resnet     |                          | 32
ngc-tensorflow1-resnet50 | tf1-resnet     |                          | 32
ngc-tensorflow1-bert     | tf1-bert       | world_size=4             | 32
hugectr-wide-deep        | hugectr        |                          | 32
paddle2-resnet50         | paddle         |                          | 32 on 4
maskrcnn-benchmark       | solver         |                          | 96
maskrcnn-benchmark       | solver, quoted |                          | 96
detectron2               | scaled         |                          | the global batch is not known
deepspeed                | deepspeed      |                          | 32 on 4
deepspeed                | deepspeed      | world_size=8             | world size is 4 by the log, 8
deepspeed                | deepspeed      | batch_size=8             | batch size per device is 4 by
deepspeed                | deepspeed      | precision=fp32           | precision is fp16 by the log
deepspeed                | deepspeed      | precision=amp            | 32
deepspeed                | in bf16        | precision=bf16           | 32
deepspeed                | in bf16        | precision=fp32           | precision is amp in bf16 by
deepspeed                | launched       |                          | 32 on 8
deepspeed                | shared         | world_size=8             | 32 on 8
deepspeed                | command        | batch_size=16            | batch size per device is 8 by
huggingface              | trainer        | world_size=8             | world size is 4 by the log, 8
huggingface              | trainer        | batch_size=4             | batch size per device is 8 by
huggingface              | trainer        | world_size=4             | 32 on 4
huggingface              | one process    | world_size=4 batch_size=8 | 32 on 4
huggingface              | commas         |                          | 3200 on 4
huggingface              | half           | precision=fp16           | 32 on 4
huggingface              | half           | precision=bf16           | precision is fp16 by the log
"""
"""A format, a head, what a user says, and what the log gives: batch and devices, or why none."""


@pytest.mark.parametrize("row", OF_HEADS.splitlines())
def test_what_a_log_says_of_its_batch_and_devices_is_read_and_held_to(row):
    name, head, told, gives = (cell.strip() for cell in row.split("|"))
    said = (fact.split("=") for fact in told.split())
    facts = tuple((fact, int(value) if value.isdigit() else value) for fact, value in said)
    lines = [*HEADS[head], *written(name)[len(STYLES[name].head) :]]
    found = measure_one(lines, log_format=name, facts=facts)
    batch, _, world = gives.partition(" on ")
    if not batch.isdigit():
        check(found, gives)
        return
    check(found, global_batch=int(batch))
    assert world in ("", str(found.world_size))


GLUON = (
    "Epoch[034] Batch [0039]/[0056]\tSpeed: 110.7 samples/sec\t accuracy=88.9",
    "[Epoch 25][Batch 14599], Speed: 6.9 samples/sec, RPN_Conf=0.021",
    "[Epoch 0][Batch 99], LR: 9.6E-05, Speed: 148.6 samples/sec, ObjLoss=430",
)


@pytest.mark.parametrize("line", GLUON)
def test_gluoncv_may_say_its_batch_and_prints_no_time(line):
    lines = ["Total batch size is set to 64 on 8 GPUs", line]
    untimed = "the log prints neither time stamps nor durations"
    check(measure_one(lines), untimed, format="gluoncv", global_batch=64, world_size=8)
    other = "global batch is 64 by the log, 256 by the command line"
    check(measure_one(lines, facts=(("global_batch", 256),)), other)


def test_the_batch_is_told_by_the_only_line_of_a_run_that_broke_off():
    found = measure_one(written("megatron", last=10), widest=True)
    check(found, "the log allows no window after a warm-up")


OLD = ':::MLL 1560822378.645 submission_benchmark: {"value": "ssd", "metadata": {}}'


@pytest.mark.parametrize(
    ("line", "workload", "reason"),
    [
        ("resnet", "resnet50", ""),
        ("bert", "bert-large", ""),
        ("bert", "bert-base", "bert-large by the log, bert-base by the command line"),
        ("unet3d", "resnet50", "unet3d by the log, resnet50 by the command line"),
        ("transformer", "transformer", "transformer-big by the log, transformer by the"),
        (OLD, "resnet50", "ssd by the log, resnet50 by the command line"),  # as in version 0.6
    ],
)
@pytest.mark.parametrize("name", ["mlperf", "mlperf-losses", "ngc-mxnet-ssd"])
def test_mlperfs_benchmark_is_the_workload_in_logs_of_any_format(name, line, workload, reason):
    head = [line] if line is OLD else says(submission_benchmark=line)
    facts = (*STYLES[name].facts, ("workload", workload))
    found = measure_written(name, [*head, *written(name)], facts=facts)
    check(found, reason and f"workload is {reason}")


# Several runs, and runs that go on from a checkpoint


def golf(milliseconds: int) -> list[str]:
    """A run of parameter-golf whose steps take as long."""
    return [
        "world_size:4 grad_accum_steps:1",
        "train_batch_tokens:32768 train_seq_len:1024 iterations:200",
        "warmup_step:1/20",
        *(
            f"step:{step}/200 train_time:{milliseconds * step}ms step_avg:{milliseconds}.00ms"
            for step in range(201)
        ),
    ]


def steps_of_deepspeed(first: int, last: int, start: float) -> list[str]:
    """What DeepSpeed prints from a step on."""
    lines = [line for line in written("deepspeed", last, start) if "global_step" in line]
    return [line for line in lines if int(re.search(r"global_step=(\d+)", line)[1]) >= first]


def test_runs_whose_clocks_begin_anew_are_results_of_their_own():
    runs = measure([*golf(250), *golf(500), *golf(125)])
    assert [(run.run, run.throughput / GLOBAL_BATCH) for run in runs] == [(1, 4), (2, 2), (3, 8)]
    # Lines of two ranks are no two runs: nothing is said again between them.
    [run] = measure([*golf(250), *golf(500)[2:]])
    assert run.status == "refused"


@pytest.mark.parametrize("says_again", [True, False])
def test_a_resume_that_trains_steps_again_is_measured_where_it_is_whole(says_again):
    """Steps 160 to 200 are trained twice: the first try is whole until then, the second behind."""
    head = STYLES["deepspeed"].head if says_again else []
    resumed = [*written("deepspeed"), *head, *steps_of_deepspeed(160, 400, 1000)]
    first, second = measure(resumed, widest=True)
    check(first, first=20, last=200, throughput=4.0 * GLOBAL_BATCH)
    check(second, first=160, last=400, throughput=4.0 * GLOBAL_BATCH)


def test_the_same_lines_again_and_those_of_a_rank_that_is_behind_are_no_resume():
    """They come at once, and not after a start."""
    lines = written("deepspeed")
    check(measure_one([*lines, *lines[-5:]], widest=True))
    found = measure_one([*lines, *steps_of_deepspeed(160, 200, 10.1)], widest=True)
    check(found, "..a run was resumed there, or the lines of several ranks", code="mixed-ranks")


def test_the_widest_window_does_not_reach_across_a_start_of_the_program():
    """Whose line belongs to the iteration behind it; test_edges.py has what is refused."""
    lines = written("torchtitan")
    at = next(at for at, line in enumerate(lines) if "step: 60 " in line)
    again = [*lines[:at], *STYLES["torchtitan"].head, *lines[at:]]
    found = measure_written("torchtitan", again, facts=(("accumulation", 1),), widest=True)
    check(found, first=60, last=200)


def test_a_line_without_a_label_is_no_line_of_the_rank_that_has_one():
    lines = written("ngc-pytorch-gnmt")
    quoted = [f"eval | {line}" for line in lines if "TRAIN [" in line]
    found = measure_written("ngc-pytorch-gnmt", [*lines[:50], *quoted, *lines[50:]])
    check(found, "..carries no rank's label, and lines before it do")


def test_a_second_run_keeps_its_arguments_behind_lines_of_other_ranks():
    lines = []
    for batch, start in ((32, 0.0), (64, 3600.0)):
        run = written("ngc-mxnet-resnet50", 140, start)[2:]
        run = [line.replace("Speed: 128.0", f"Speed: {batch / 0.25!r}") for line in run]
        lines.append(f"[1,1]<stderr>:Namespace(batch_size={batch}, gpus='1')")
        for line in run:  # the higher rank is the first to print
            lines += [f"[1,1]<stderr>:{line}", f"[1,0]<stderr>:{line}"]
    assert [one.throughput for one in measure(lines)] == [128.0, 256.0]


def test_a_batch_that_grows_ends_the_widest_window():
    """Megatron's ramp-up: each line says the batch of its iterations."""
    lines, consumed = [], 0
    for iteration in range(10, 301, 10):
        batch = 16 if iteration <= 60 else 32
        consumed += 10 * batch
        lines.append(
            f" iteration {iteration:8d}/     300 | consumed samples: {consumed:12d} | elapsed time "
            f"per iteration (ms): 250.0 | global batch size: {batch:5d} | lm loss: 1.0E+01 |"
        )
    reason = "..16 by the line of iteration 30, 32 by the line of iteration 70"
    check(measure_one(lines), reason, widest=(60, 300))
    check(measure_one(lines, widest=True), first=60, last=300, throughput=32 / 0.25)


# Epochs, and lines of several iterations


def test_of_epochs_that_count_alike_the_first_is_what_a_log_prints():
    lines = printed("paddle2-resnet50", ((at % 600, at, 32) for at in range(10, 900, 10)))
    second = [line.replace("epoch:0", "epoch:1") for line in lines[59:]]
    found = measure_one([*lines[:59], *second])
    assert (found.first_printed, found.last_printed) == (10, 590)


def test_of_several_epochs_the_first_is_named_where_no_window_fits():
    first, *others = (
        printed("pytorch-resnet50", ((n, n, 90) for n in range(30))) for _ in range(3)
    )
    lines = first[:9]
    for epoch, printed_then in enumerate(others, 1):
        lines += [line.replace("[0][", f"[{epoch}][") for line in printed_then]
    reason = "the log allows no window after a warm-up of 20 iterations: printed are 0 to 8"
    check(measure_one(lines, widest=True, facts=(("global_batch", 32),)), reason)


def test_a_step_back_in_a_later_epoch_is_no_resume():
    """Of later epochs, no lines are kept that could follow each other."""
    lines = printed("pytorch-resnet50", ((n, n, 90) for n in range(130)))
    second = [line.replace("[0][", "[1][") for line in lines]
    [run] = measure([*lines, *second, *second[40:]], facts=(("global_batch", 32),))
    check(run)


def test_a_stamp_that_is_no_time_is_none():
    lines = written("ngc-pytorch-resnet50")
    lines[-1] = lines[-1].replace("2020-09-15", "2020-13-15")
    check(measure_one(lines), last_printed=199)


def test_rnnt_prints_one_batch_over_the_time_of_ten():
    """So does every submission of MLPerf v2.0 that prints each tenth batch."""
    lines = printed("ngc-pytorch-rnnt", ((i, 0.6 * i, 2048 / 6) for i in range(10, 131, 10)))
    facts = (("global_batch", 2048), ("accumulation", 1))
    check(measure_one(lines, facts=facts), throughput=2048 / 0.6)


# MindSpore counts in one line and tells the time in the next: epoch n takes 2 + 0.1 n s.
SUNK = printed("mindspore-resnet50", ((10 * n, n, 320 / (2 + 0.1 * n)) for n in range(1, 14)))
UNCOUNTED = [*SUNK[:8], *SUNK[9:]]  # a time that follows another has no count
# From the time of 50 to the count of 80, a hole: what is left reads like 50's own time.
HOLE = [*SUNK[:9], *SUNK[15:]]
SINKS = partial(case, facts=(("global_batch", 32),))
SSD = [
    f"[Training][Iteration {i}][Epoch {1 + i // 131}, Batch {i % 131}/131] lr: 0.06881, "
    f"training time: 110.000 [ms], speed: {896 / 0.11:.3f} [imgs/sec], loss=6.{i}"
    for i in range(100, 801, 100)
    for _ in range(2)
]
OF_SSD = partial(case, facts=(("global_batch", 896),))
# A line of MXNet's SSD is the mean of the steps since the line before it, here of 20.
TIMES = {80: 225, 120: 245, 180: 209, 200: 202}
SHORTER = [
    re.sub(r"speed: \S+", "speed: 141.907", STYLES["ngc-mxnet-ssd"].line(i, i, 32_000 / took))
    for i, took in TIMES.items()
]
GLUONNLP = written("gluonnlp-bert", last=119)
TWENTIES = [x for x in written("oneflow-models-wide-deep") if " iter: 60/" not in x]
MIDDLE = [*STYLES["paddleseg"].head, *written("paddleseg")[-3:]]


def lacking(*steps: int) -> list[str]:
    """gluon-nlp's lines, each of the ten steps since the line before it, but for those of some."""
    return [line for line in GLUONNLP if not any(f"[step {step}]\t" in line for step in steps)]


@cases(
    SINKS("a time without a count", UNCOUNTED, "the time from iteration 40 to 50", ends=(40, 60)),
    SINKS("before it", UNCOUNTED, "..iteration 40 is printed 2 times", ends=(20, 40)),
    SINKS("a time in front of a hole", HOLE, "the time from iteration 40 to 50", ends=(20, 50)),
    SINKS("a time before that", HOLE, ends=(20, 40), seconds=2.3 + 2.4),
    # MXNet's mean begins again with each epoch: seven batches of epoch 4, and 100 more.
    OF_SSD("within an epoch", SSD, wide=True, first=393, last=500, throughput=896 / 0.11),
    OF_SSD("across", SSD, "the time from iteration 200 to 262 is not in the log", ends=(200, 300)),
    SINKS("a shorter step", SHORTER, "..", ends=(80, 120), widest=None),
    SINKS("a shorter step: widest", SHORTER, "..", wide=True, widest=None),
    case("a lost line", lacking(9, 19), wide=True, first=29, last=119, throughput=128.0),
    case("lost lines", lacking(9, 29, 49, 69), wide=True, first=89, last=119, throughput=128.0),
    # Beside a clock, a mean of twenty iterations does not stand for a line that is lost.
    case("a mean beside a clock", TWENTIES, facts=FOUR),
    # A log that begins in the middle does not say what its first line covers.
    case("the middle", MIDDLE, wide=True, first=180, last=200),
)
def test_a_time_is_of_the_steps_that_are_known_to_be_its(log, how, reason, expected):
    check(measure_one(log, **how), reason, **expected)


@pytest.mark.parametrize(
    ("name", "stray"),
    [("gluonnlp-bert", (59, 89)), ("gluonnlp-bert", (29, 59, 89)), ("paddleseg", (30, 60))],
)
@pytest.mark.parametrize("widest", [True, False])
def test_lines_farther_apart_than_the_log_prints_them_tell_no_time(name, stray, widest):
    """gluon-nlp's says its interval; PaddleSeg's does not, and one distance alone is none."""
    lines, head = written(name), len(STYLES[name].head)
    marks = [f"[step {step}]\t" if name == "gluonnlp-bert" else f"iter: {step}/" for step in stray]
    again = [next(line for line in lines if mark in line) for mark in marks]
    ends = None if widest else stray[-2:]
    strays, _ = runs_written(name, [*lines[:head], *again, *lines[head:]], widest=widest, ends=ends)
    reason = f"..the time from iteration {stray[0 if widest else -2]} to"
    check(strays, reason, first_printed=stray[0])


@pytest.mark.parametrize("label", ["0: ", "[1,0]<stdout>:", "[rank0]: ", "(Worker pid=7) "])
def test_keras_counts_its_epochs_behind_labels(label):
    lines = []
    for epoch in range(1, 31):
        took = epoch // 20 * 10 + 90
        lines.append(f"{label}Epoch {epoch}/30")
        lines.append(f"{label}32/32 [======] - {took}s 3s/step - loss: 0.2911")
    found = measure_one(lines, ends=(20, 30), facts=(("epoch_samples", 1000),))
    check(found, format="keras", throughput=10.0)


def test_detectron2s_file_reads_as_its_screen_does():
    screen = written("detectron2")
    file = [line.replace(" d2.utils.events]:", "] d2.utils.events INFO:") for line in screen]
    assert measure_one(file).throughput == measure_one(screen).throughput == 8.0


# Evaluations and paces in the programs' own words

EVALUATIONS = """\
detectron2: [06/11 13:51:41 d2.evaluation.evaluator]: Start inference on 22 batches
hugectr-wide-deep: [HCTR][16:16:52.539][INFO][RK0][main]: Eval Time for 681 iters: 5.60297s
levanter: Progress on:eval 10.0it/184it rate:1.0it/s remaining:02:54 elapsed:00:10 postfix:-
maskrcnn-benchmark: 2020-06-25 18:56:46,514 a.inference INFO: Start evaluation on coco dataset
maxtext: eval metrics after step: 100, loss=9.855, total_weights=75264.0
megatron:  validation loss at iteration 100 | lm loss value: 2.5E+00 |
mmengine: 09/15 14:33:13 - mmengine - INFO - after_train_iter in EvaluateChatHook.
mmengine: 11/22 21:31:51 - mmengine - INFO - Iter(val) [50/50]    mIoU: 56.06  time: 0.0345
nanogpt: step 100: train loss 4.0390, val loss 4.0427
ngc-pytorch-mlperf-bert: {'global_steps': 60, 'eval_loss': 1.36, 'eval_mlm_accuracy': 0.71}
olmo: [2024-04-17 09:43:26] INFO     [olmo.train:816, rank=0] [eval_step=10/50]
openmmlab: 2022-02-10 06:17:39,706 - mmseg - INFO - Iter(val) [63]\tmIoU: 0.53, aAcc: 0.93
openmmlab: [>>>>>>>>>>>>] 500/500, 12.3 task/s, elapsed: 41s, ETA:     0s
tensorflow2-bert: I0904 12:01:02.1 14 a.py:458] Running evaluation after step: 60.
tensorflow2-resnet50: 313/313 - 61s - loss: 6.9 - accuracy: 0.01 - val_loss: 6.8
tf-cnn-benchmarks: Accuracy @ 1 = 0.3692 Accuracy @ 5 = 0.6404
tf-cnn-benchmarks: Running evaluation at global_step 70
torchtitan: [titan] 2025-06-04 08:52:10,224 - root - INFO - validate step: 50  loss:  8.9
"""
"""What each format's program prints of an evaluation."""


@pytest.mark.parametrize(("name", "said"), [x.split(": ", 1) for x in EVALUATIONS.splitlines()])
def test_no_window_holds_an_evaluation_between_the_lines(name, said):
    """Iterations go on behind it, and so does the clock."""
    lines = written(name)
    lines.insert(len(lines) // 2, said)
    found = measure_written(name, lines)
    check(found, f"{EVALUATED}: the first between ")
    assert found.widest[1] - found.widest[0] < found.last_printed - 20
    check(measure_written(name, lines, ends=found.widest))


def times(factor: float):
    return lambda number: f"{float(number[0]) * factor:.3f}"


CLOCKS, PACE = "the log's two clocks disagree: ", "..by what most of its lines print"


@pytest.mark.parametrize(
    ("name", "printed", "into", "reason"),
    [
        ("openmmlab", r"time: 0\.250", "time: 0.200", CLOCKS),
        (
            "oneflow-models-wide-deep",
            r"(?<=latency\(ms\): )[\d.]+",
            times(2),
            CLOCKS + "128 and 64 ",
        ),
        ("paddle2-bert", r"(?<=avg_batch_cost: )[\d.]+", times(2), CLOCKS + "128 and 64 "),
        ("maskrcnn-benchmark", r"(?<= time: )[\d.]+", "0.01", PACE),
        ("detectron2", r"(?<= time: )[\d.]+", "0.01", PACE),
        ("ngc-pytorch-gnn", r"(?<=_time : )[\d.]+", times(1.1), PACE),
        ("ngc-pytorch-tacotron2", r"(?<=_time : )[\d.]+", times(1.1), PACE),
        ("ngc-pytorch-gnn", r"(?<=_time : )[\d.]+", times(0.1), ""),  # they wait for their input
        ("ngc-pytorch-tacotron2", r"(?<=_time : )[\d.]+", times(0.1), ""),
    ],
)
def test_an_iteration_takes_about_as_long_as_the_lines_print(name, printed, into, reason):
    lines = written(name)
    changed = [re.sub(printed, into, line) for line in lines]
    assert changed != lines
    true = measure_written(name, lines).throughput
    check(measure_written(name, changed), reason, throughput=None if reason else true)


@pytest.mark.parametrize("factor", [2, 10])
def test_bars_whose_counts_are_renumbered_are_denied_by_the_pace_that_they_print(factor):
    log = (REAL / "ran_lightning.log").read_bytes()

    def more(found: re.Match[bytes]) -> bytes:
        return b"%d/%d [" % tuple(int(count) * factor for count in found.groups())

    how = {"facts": (("global_batch", 32),), "widest": True}
    assert measure(log, **how)[0].throughput
    check(measure(re.sub(rb"(\d+)/(\d+) \[", more, log), **how)[0], PACE)


@pytest.mark.parametrize(
    ("name", "picked", "why"),
    [
        ("torchtitan", r"step: \d*[02468]0 ", "..the printed speeds mean 64 samples a step"),
        ("huggingface", r"\d*[02468]/1000", "..a progress bar shows 15 of 1000 as 3 %"),
        ("lightning", r"\d*[02468]/1000", "..a progress bar shows 15 of 1000 as 3 %"),
    ],
)
def test_picked_lines_numbered_anew_are_denied_by_what_they_print_beside(name, picked, why):
    style, pattern = STYLES[name], formats()[name].line
    lines = uneven(name, 20 * style.every * 20)
    how = {"facts": (*style.facts, ("accumulation", 1)), "widest": True}
    check(measure_written(name, lines, **how))
    numbers = iter(range(style.first, sys.maxsize, style.every))
    left = []
    for line in lines:
        found = pattern.search(f"{line}\n".encode())
        start, stop = found.span("iteration") if found else (-1, -1)
        if start < 0:
            left.append(line)
        elif re.search(picked, line):
            left.append(f"{line[:start]}{next(numbers):{stop - start}d}{line[stop:]}")
    assert 100 < len(left) < len(lines)
    check(measure_written(name, left, **how), why)
