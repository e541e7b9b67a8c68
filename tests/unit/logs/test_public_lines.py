"""Lines as public logs have them: each log gives what its lines give by hand, or a refusal.

The logs lie in tests/data/logs/public, whose README says where their lines are from.
"""

import re
from typing import NamedTuple

import pytest
from reperf.logs.formats import formats
from reperf.logs.recognise import NO_FORMAT

from tests.unit.logs.asking import REAL, measure_one, measure_written, runs_written
from tests.unit.logs.written import written

SINGLE = "its times are those of single iterations, and not every iteration is printed"
OLMOS = (("global_batch", 512), ("accumulation", 1))


def read(name: str, edits: tuple[str, ...] = ()) -> bytes:
    """One of the logs, edited: a pattern, what takes its place, another pattern, .."""
    text = (REAL / "public" / f"{name}.log").read_text()
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        text, count = re.subn(old, new, text)
        assert count, old
    return text.encode()


class Log(NamedTuple):
    """A log that gives a number."""

    log: str  # its name: that of the format, and what distinguishes it from others
    ends: tuple[int, int]  # two iterations
    seconds: float  # between their ends, the sum of what the lines print
    batch: int  # global
    facts: tuple = ()  # what the command line must say
    edits: tuple = ()  # of the text
    tokens: int | None = None  # between the two iterations, if the log says them
    world: int | None = None  # devices, if it says them


XL, SQUAD = "ngc-pytorch-transformerxl", "ngc-pytorch-squad"
MEASURED = [
    Log("nanogpt", (1631, 1641), 5.62937, 12, tokens=7680),
    Log(
        "nanogpt",
        (1631, 1641),
        5.62937,
        480,
        (("global_batch", 480), ("accumulation", 5)),
        (".*block_size.*", ""),
    ),
    Log("build-nanogpt", (0, 3), 8.67835, 512, (("global_batch", 512),), tokens=3 * 524288),
    Log("modded-nanogpt-golf", (9650, 9800), 6.571, 512, tokens=150 * 524288, world=8),
    Log("modded-nanogpt-golf-mlx", (20, 50), 12.425, 8, tokens=30 * 8192),
    Log("modded-nanogpt-speedrun", (20, 120), 278.52, 512, tokens=100 * 524288, world=2),
    Log("megatron-deepspeed", (20, 50), 162.73, 96),
    Log("paddledetection", (20, 120), 235, 8, (("world_size", 1),)),
    Log("paddlerec-batches", (3770, 3800), 964.818, 512, (("world_size", 1),)),
    Log("gluoncv-stamped", (50, 150), 100, 8, (("global_batch", 8),)),
    Log("llm-c", (1, 9), 20.39491, 512, tokens=8 * 524288, world=1),
    *(
        Log("nanochat", (1, 11), 4.8483, 256, edits=edits, tokens=10 * 524288, world=8)
        for edits in ((), ("mfu", "bf16_mfu"), ("/21400", ""))
    ),
    Log("litgpt", (1, 10), 4.32549, 4),
    Log("litgpt", (1, 10), 4.32549, 8, edits=(r"{'devices'", "'num_nodes': 2}\n{'devices'")),
    Log("olmo", (1, 3), 78.634, 512, OLMOS, tokens=2 * 1048576),
    Log("olmo-rich", (1, 10), 321, 512, OLMOS, tokens=9 * 4194304),
    Log("nanotron", (281, 291), 115, 2, tokens=20 * 256),
    Log("nanotron-without-year", (281, 291), 115, 2, tokens=20 * 256),
    Log("levanter", (5, 11), 207, 320, (("global_batch", 320), ("accumulation", 1))),
    Log("composer", (5, 105), 37468.08, 1024),
    Log("tf-cnn-benchmarks", (20, 120), 300, 64),
    # Validations take no time.
    Log("modded-nanogpt", (20, 120), 10, 64, (("global_batch", 64),)),
    *(
        Log("modded-nanogpt-validations", (125, 1000), 87.5, 64, (("global_batch", 64),), edits)
        for edits in ((), (r"(val_loss:4\.8) ", r"\1 val_avg_loss:4.8 val_ema_loss:4.9 "))
    ),
    Log("parameter-golf", (500, 2500), 197.504, 384, world=8),
    Log(XL, (20, 120), 50, 32, tokens=100 * 6144),
    # Every fiftieth step tells the time; the batch is divided by the accumulation only later.
    Log(SQUAD, (51, 151), 60, 128),
    Log(
        "ngc-pytorch-squad",
        (51, 151),
        60,
        128,
        edits=("python -m torch.distributed.launch", "torchrun"),
    ),
    Log(SQUAD, (51, 151), 60, 128, edits=("steps=1", "steps=4")),
    Log(SQUAD, (51, 151), 60, 256, edits=(" --nproc", " --nnodes=2 --nproc")),
    Log("ngc-mxnet-resnet50", (20, 120), 15, 3264),
    # Older versions print the end of a range alone.
    Log("ngc-mxnet-resnet50", (20, 120), 15, 3264, edits=(r"\[\d+-(\d+)\]", r"[\1]")),
    Log("ngc-mxnet-resnet50-intel", (50, 350), 360, 4096),
]


@pytest.mark.parametrize("log", MEASURED, ids=[log.log for log in MEASURED])
def test_a_public_log_gives_what_its_lines_print(log):
    content = read(log.log, log.edits)
    found = measure_one(content, ends=log.ends, facts=log.facts)
    assert found.reason == ""
    assert log.log.startswith(found.format)
    assert (found.global_batch, found.seconds) == (log.batch, pytest.approx(log.seconds))
    assert log.world in (None, found.world_size)
    if log.tokens is not None:
        counted = measure_one(content, ends=log.ends, facts=log.facts, unit="tokens")
        assert (counted.reason, counted.samples) == ("", log.tokens)


UNKNOWN = "the global batch is not known"
SPEEDS = "the printed speeds mean "


@pytest.mark.parametrize(
    ("log", "ends", "edits", "reason"),
    [
        ("nanogpt", (1631, 1641), (".*block_size.*", ""), UNKNOWN),
        # A line that overrides the configuration is lost: the tokens are not those of what is left.
        ("nanogpt", (1631, 1641), ("Overriding: block_size = .*\n", ""), UNKNOWN),
        ("nanogpt", (1631, 1641), ("Overriding: batch_size = .*\n", ""), UNKNOWN),
        ("build-nanogpt", (0, 3), (), UNKNOWN),
        ("build-nanogpt", (0, 2), ("(step    2)", r"HellaSwag accuracy: 1\n\1"), "evaluations lie"),
        ("modded-nanogpt-golf", (9650, 9800), ("seed:", "seq_len_schedule:1,2\nseed:"), UNKNOWN),
        ("paddledetection", (20, 120), (), UNKNOWN),
        ("gluoncv-stamped", (50, 150), (".* - INFO: ", ""), "the log prints neither time stamps"),
        ("nanogpt-seldom", (2920, 2970), (), SINGLE),
        # What a program prints of its tokens must be those of its batch.
        ("llm-c", (1, 9), ("524288", "1048576", "=8", "=16"), SPEEDS + "512 "),
        (XL, (20, 120), ("12288", "24576"), SPEEDS + "64 samples a step"),
        (XL, (20, 120), (r".* step       80 .*\n", ""), "the time from"),
        ("litgpt-pretraining", (3050700, 3050900), (), "its times leave out the loading of data"),
        ("olmo", (1, 3), (), UNKNOWN),
        ("olmo", (1, 3), (".*1,048,576\n", ""), "the tokens of step 1 do not follow its line"),
        ("composer-in-minutes", (5, 105), (), SPEEDS),
        ("composer", (5, 105), (".*throughput/samples_per_sec.*", ""), "it prints no speed"),
        # Lines of two batches make no record.
        ("composer", (5, 105), (r"(?s)\t Train time/train: 0\.52.*?/batch: 104\n", ""), NO_FORMAT),
        ("tf-cnn-benchmarks", (20, 120), (r"\d(?=\n)", ""), "the log prints neither time stamps"),
        (
            "tf-cnn-benchmarks",
            (20, 120),
            ("training", "forward only"),
            "the log says that its run trains nothing: it runs forward only",
        ),
        ("modded-nanogpt", (20, 120), ("^", "batch_size : int = 8 # sequences\n"), UNKNOWN),
        (SQUAD, (51, 151), ("/174", "/151"), "too short: it ends at iteration 101"),
        (SQUAD, (51, 151), (".*launch.*\n", ""), UNKNOWN),
    ],
)
def test_a_public_log_that_cannot_be_measured_says_why(log, ends, edits, reason):
    assert measure_one(read(log, edits), ends=ends).reason.startswith(reason)


HEADLESS = ("B=32.*\n", "")


@pytest.mark.parametrize(
    ("edits", "facts", "said"),
    [
        ((), {"global_batch": 32}, "global batch is 512 by the log, 32 by the command line"),
        (
            ("B=32 ", "B=16 "),
            {},
            "the lines count 5.24e+07 tokens in the window, and a global batch of 256 by the log "
            "with 1024 tokens a sample by the log makes 2.62e+07",
        ),
        (HEADLESS, {"global_batch": 512}, "batch of 512 by the command line, a sample has"),
        (HEADLESS, {"global_batch": 32}, "batch of 32 by the command line, a sample has 1637"),
    ],
)
def test_tokens_that_lines_count_are_held_against_the_batch(edits, facts, said):
    found = measure_one(
        read("modded-nanogpt-speedrun", edits), ends=(20, 120), facts=tuple(facts.items())
    )
    assert said in (found.reason or found.warnings[0])
    assert (found.status == "ok") == (edits == HEADLESS)


def test_a_batch_from_which_the_length_of_a_sample_follows_is_said():
    """No line denies an eighth of the batch; whoever reads 8,192 tokens for GPT-2 does."""
    found = measure_one(read("build-nanogpt"), ends=(0, 3), facts=(("global_batch", 64),))
    assert found.warnings == (
        "implied-length: the log counts 524288 tokens a step; with a global batch of 64 by the "
        "command line, a sample has 8192 tokens",
    )


@pytest.mark.parametrize(("style", "warned"), [("torchvision", True), ("oneflow-resnet50", False)])
def test_a_batch_that_nothing_could_contradict_is_said(style, warned):
    [found] = runs_written(style, written(style))
    said = any(warning.startswith("given-batch: the command line") for warning in found.warnings)
    assert (found.status, said) == ("ok", warned)


def program(*settings: str, after: str) -> tuple[str, str]:
    """An edit that puts a program's text before a log of modded-nanogpt."""
    given = "".join(f"    {setting} # as in a sweep\n" for setting in settings)
    return "^", rf"class Hyperparameters:\n{given}args = Hyperparameters()\n{after}\n"


SUMS = "train_accumulation_steps = args.batch_size // n\n"
SUMS += "for i in range(1, train_accumulation_steps+1):"
LOADER = "train_loader = distributed_data_generator(args.train_files, "
WORLD = LOADER + "world_size * args.train_seq_len, rank)\nassert world_size == 8"
SWEEP = (
    "def distributed_data_generator(filename_pattern: str, batch_size: int, seq_len=1024):\n"
    'batch_size = 8 * 64 * 1024\ntrain_loader = distributed_data_generator("x.bin", batch_size)\n'
    "Running on device_name=x with world_size=8\n"
)
IN_SEQUENCES = "batch_size : int = 8*64", "sequence_length : int = 1024"
IN_TOKENS = "batch_size = 8*64*1024", "seq_len = 64*1024"
PACKED = program(
    "train_batch_size: int = 2048 * 24 * 8", after=LOADER + "args.train_batch_size, x)"
)


@pytest.mark.parametrize(
    ("edits", "batch", "tokens", "world"),
    [
        (program(*IN_SEQUENCES, after=SUMS), 512, 524288, None),
        (
            program(*IN_TOKENS, after=LOADER + "args.batch_size, r)\nx.split(args.seq_len)"),
            8,
            524288,
            None,
        ),
        (program("train_seq_len = 48*1024", after=WORLD), 8, 393216, 8),
        (("^", SWEEP), 512, 524288, 8),
        (PACKED, None, 393216, None),
    ],
)
def test_a_program_in_its_log_gives_the_batch_that_nothing_else_can_set(
    edits, batch, tokens, world
):
    log = read("modded-nanogpt", edits)
    counted = measure_one(log, ends=(20, 120), unit="tokens")
    assert (counted.reason, counted.samples) == ("", 100 * tokens)
    assert (counted.global_batch, counted.world_size) == (batch, world)
    found = measure_one(log, ends=(20, 120))
    assert found.samples == (100 * batch if batch else None)
    assert batch or found.reason.startswith(UNKNOWN)


@pytest.mark.parametrize(
    "edits",
    [
        program(*IN_SEQUENCES, after=SUMS.replace("range", "xrange")),  # nothing adds them up
        program(*IN_SEQUENCES, after=SUMS + "\nimport argparse"),
        program(*IN_SEQUENCES, after=SUMS + "\nargs.batch_size = 64"),
        program("batch_size : int = int(os.environ['B'])", IN_SEQUENCES[1], after=SUMS),
        program("batch_size : int = 8*64 // 2", IN_SEQUENCES[1], after=SUMS),
        program("train_seq_len = 48*1024", after=WORLD + " or world_size == 1"),
        program("train_seq_len = 48*1024", after=WORLD.replace("assert", "if")),
        # Some versions give their loader what one device reads.
        program("train_seq_len = 48*1024", after=LOADER + "args.train_seq_len, 1)"),
    ],
)
def test_a_program_whose_batch_something_else_may_set_gives_none(edits):
    assert measure_one(read("modded-nanogpt", edits), ends=(20, 120)).reason.startswith(UNKNOWN)


@pytest.mark.parametrize(
    "schedule",
    [
        "    train_bs_schedule: tuple = (8 * 2048 * 8,\n      16 * 2048 * 8)\n",
        "".join(f"    TrainingStage(batch_size={size} * 2048 * 8, lr=1),\n" for size in (8, 16)),
    ],
)
def test_a_batch_that_changes_with_the_step_is_refused_whatever_a_person_gives(schedule):
    """Otherwise the last stage would be measured with the batch of the first."""
    log = read("modded-nanogpt", ("^", "distributed_data_generator\n" + schedule))
    found = measure_one(log, ends=(20, 120), facts=(("global_batch", 192),))
    assert found.reason == "number of tokens in a step is 131072 by the log, 262144 by the log"


def test_the_clock_of_modded_nanogpt_that_is_set_back_is_not_crossed():
    found = measure_one(read("modded-nanogpt"), ends=(5, 105), facts=(("global_batch", 64),))
    assert found.reason.startswith("time steps back by 0.9 s")


def test_other_nodes_lines_are_of_other_ranks():
    lines = read("ngc-mxnet-resnet50").decode().splitlines()
    others = [line.replace("Node[0]", "Node[1]").replace(",594", ",612") for line in lines]
    mixed = [line for pair in zip(others, lines, strict=True) for line in pair]
    assert measure_one(mixed).throughput == 21760


def test_tacotron2s_count_that_begins_again_is_that_of_another_epoch():
    def line(second: int, said: str) -> str:
        return f":::NVLOGv0.2.2 Tacotron2_PyT {1583224680 + second}.5 (x.py:1) {said}"

    lines = [line(-3, 'args: {"batch_size": 4, "world_size": 2}')]
    for epoch in range(2):
        lines.append(line(100 * epoch, f"train_epoch_start: {epoch}"))
        for step in range(52):
            lines += [
                line(100 * epoch + step, f"train_iter_{at}: {step}") for at in ("start", "stop")
            ]
    measured = measure_one(lines, ends=(20, 51))
    assert (measured.status, measured.seconds, measured.throughput) == ("ok", 31, 8)


SIX = "  6%|#         | 60/"


@pytest.mark.parametrize(
    ("name", "last", "old", "new", "reason"),
    [  # each limit from just inside, and from just outside
        ("modded-nanogpt", 120, "/1480", "/120", ""),
        ("modded-nanogpt", 121, "/1480", "/120", "iteration 121 is printed, of 120 in all"),
        ("huggingface", 120, SIX, SIX.replace("6", "7", 1), ""),
        (
            "huggingface",
            120,
            SIX,
            SIX.replace("6", "8", 1),
            "a progress bar shows 60 of 1000 as 8 %",
        ),
    ],
)
def test_a_count_is_held_to_the_total_beside_it(name, last, old, new, reason):
    lines = written(name, last)
    changed = [line.replace(old, new) for line in lines]
    assert changed != lines
    assert measure_written(name, changed).reason == reason


@pytest.mark.parametrize("status", ["aborted", "failed", "SUCCESS"])
def test_an_mlperf_run_that_did_not_succeed_is_refused(status):
    lines = [line.replace("success", status) for line in written("mlperf")]
    reason = f"the log says that the run stopped as {status}, without success"
    assert measure_written("mlperf", lines).reason == reason


def test_mlperf_losses_in_front_of_a_batch_count_nothing():
    lines = written("mlperf-losses")
    measured = measure_written("mlperf-losses", [lines[5], *lines])
    assert (measured.status, measured.first_printed) == ("ok", 10)


def test_what_lightning_draws_behind_a_validation_of_an_epoch_is_no_training_of_it():
    lines = written("lightning")
    bar = "Validation DataLoader 0:  50%|#         | 1/2 [00:00<00:00, 4.00it/s]"
    measured = measure_written("lightning", [*lines[:60], bar, *lines[60:]])
    assert measured.reason == "too short: it ends at iteration 59, the window at 120"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("tf-cnn-benchmarks", "100\timages/sec: 134.5 +/- 0.1 (jitter = 0.6)\t8.023"),
        ("paddlerec", "Epoch: 1, using time 602.441092968 second, ips 54532.02 word/sec."),
        (
            "paddle2-transformer",
            "step_idx: 0, epoch: 0, batch: 0, avg loss: 11.1, normalized loss: 9.7, ppl: 69253.2",
        ),
    ],
)
def test_lines_that_tell_no_time_are_known_and_refused(name, line):
    measured = measure_one([line], facts=(("global_batch", 32),))
    assert (measured.format, measured.reason) == (name, formats()[name].untimed)


@pytest.mark.parametrize(
    ("printed", "stamped", "seconds", "reason"),
    [
        (5, 5, 50, ""),
        # Five steps have the same stamp, and each prints its own speed.
        (1, 5, 50, ""),
        (5, 20, None, "step 10 is stamped together with others"),
        (1, 5, None, "the tokens of step 40 do not follow its line"),
    ],
)
def test_olmo_core_is_timed_by_stamps_or_where_these_are_of_several_steps_by_each(
    printed, stamped, seconds, reason
):
    lines = []
    for step in range(printed, 201, printed):
        second = -(-step // stamped) * stamped // 2
        at = f"2026-08-08 12:{second // 60:02}:{second % 60:02}.000"
        lines += [f"{at}\th:0\tolmo_core.x:7\tINFO\t[step={step}/200,epoch=1,eta=1h]"]
        lines += ["    throughput/device/BPS=2.000"] * (step != 40 or "tokens" not in reason)
        lines += [f"    throughput/total tokens={step * 4096:,d}"]
    facts = (("global_batch", 4), ("accumulation", 1))
    found = measure_one(lines, ends=(20, 120), facts=facts, unit="tokens")
    assert found.reason.startswith(reason)
    assert (found.format, found.seconds) == ("olmo-core", seconds)
    assert found.samples == (4096 * 100 if seconds else None)


def test_the_command_of_deepspeeds_launcher_says_the_batch_of_a_device():
    command = "cmd = deepspeed main.py --x 1 --per_device_train_batch_size 8 --seed 1"
    measured = measure_one([command, *written("deepspeed", 120)], facts=(("batch_size", 16),))
    assert measured.reason == "batch size per device is 8 by the log, 16 by the command line"
