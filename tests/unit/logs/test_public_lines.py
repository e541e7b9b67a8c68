"""Real logs and lines: each gives what its lines give by hand, or the right refusal.

tests/data/logs/README.md says where the excerpts are from, public/README.md where the lines are.
Where we ran the program ourselves, a clock of our own ran beside it, in a callback that wrote down
the ends of iterations.
"""

import re
from typing import NamedTuple

import pytest
from reperf.logs.formats import formats
from reperf.logs.recognise import NO_FORMAT

from tests.unit.logs.asking import REAL, check, measure, measure_one, measure_written
from tests.unit.logs.written import RATE, STEP, written

Edits = tuple[str, ...]


def read(name: str, edits: Edits = ()) -> bytes:
    """One of the logs, edited: a pattern, what takes its place, another pattern, .."""
    [path] = [*REAL.glob(f"{name}.log"), *REAL.glob(f"public/{name}.log")]
    text = path.read_text()
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        text, count = re.subn(old, new, text)
        assert count, old
    return text.encode()


class Log(NamedTuple):
    """A log that gives a number."""

    log: str  # its name: that of the format, and what distinguishes it from others
    ends: tuple[int, int]  # two iterations
    seconds: float  # between their ends: the sum of what the lines print, or by a clock of our own
    batch: int  # global
    facts: tuple = ()  # what the command line must say
    edits: Edits = ()  # of the text
    tokens: int | None = None  # between the two iterations, if the log says them
    world: int | None = None  # devices, if it says them
    format: str | None = None  # its format, if the name does not say it
    off: float = 1e-6  # by which share a clock of our own may be off


XL, SQUAD, MXNET = "ngc-pytorch-transformerxl", "ngc-pytorch-squad", "ngc-mxnet-resnet50"
NO_LENGTH = (".*block_size.*", "")
TOLD = (("global_batch", 480), ("accumulation", 5))
OLMOS, ALONE = (("global_batch", 512), ("accumulation", 1)), (("world_size", 1),)
B8, B64, B512 = ((("global_batch", batch),) for batch in (8, 64, 512))
ONE = (("batch_size", 8), ("nodes", 1), ("devices_per_node", 1))
AN_EPOCH = (*ONE, ("epoch_samples", 96))
TWO_LITGPT_NODES = r"{'access_token': None,\n 'devices'\1 'num_nodes': 2,\n 'optimizer': 'AdamW',\n"
TWO_NODES = (("batch_size", 128), ("nodes", 2), ("devices_per_node", 8))
PYTORCH, NGC_4 = "pytorch_resnet50_2n8g_b128_fp32", "ngc-pytorch_resnet50_4n8g_b128_fp32"
MEASURED = [
    Log("nanogpt", (1631, 1641), 5.62937, 12, tokens=7680),
    Log("nanogpt", (1631, 1641), 5.62937, 480, TOLD, NO_LENGTH),
    Log("build-nanogpt", (0, 3), 8.67835, 512, B512, tokens=3 << 19),
    Log("modded-nanogpt-golf", (9650, 9800), 6.571, 512, tokens=150 << 19, world=8),
    Log("modded-nanogpt-golf-mlx", (20, 50), 12.425, 8, tokens=30 << 13),
    Log("modded-nanogpt-speedrun", (20, 120), 278.52, 512, tokens=100 << 19, world=2),
    Log("megatron-deepspeed", (20, 50), 162.73, 96),
    Log("paddledetection", (20, 120), 235, 8, ALONE),
    Log("paddlerec-batches", (3770, 3800), 964.818, 512, ALONE),
    Log("gluoncv-stamped", (50, 150), 100, 8, B8),
    Log("llm-c", (1, 9), 20.39491, 512, tokens=8 << 19, world=1),
    Log("nanochat", (1, 11), 4.8483, 256, tokens=10 << 19, world=8),
    Log("nanochat", (1, 11), 4.8483, 256, (), ("mfu", "bf16_mfu", "/21400", "")),
    Log("litgpt", (1, 10), 4.32549, 4),
    Log("litgpt", (1, 10), 4.32549, 8, (), (r"{'devices'(.*\n)", TWO_LITGPT_NODES)),
    Log("olmo", (1, 3), 78.634, 512, OLMOS, tokens=2 << 20),
    Log("olmo-rich", (1, 10), 321, 512, OLMOS, tokens=9 << 22),
    Log("nanotron", (281, 291), 115, 2, tokens=20 * 256),
    Log("nanotron-without-year", (281, 291), 115, 2, tokens=20 * 256),
    Log("levanter", (5, 11), 207, 320, (("global_batch", 320), ("accumulation", 1))),
    Log("composer", (5, 105), 37468.08, 1024),
    Log("tf-cnn-benchmarks", (20, 120), 300, 64),
    # Validations take no time.
    Log("modded-nanogpt", (20, 120), 10, 64, B64),
    Log("modded-nanogpt-validations", (125, 1000), 87.5, 64, B64),
    Log(
        "modded-nanogpt-validations", (125, 1000), 87.5, 64, B64, (r"(:4\.8) ", r"\1 val_a_loss:4 ")
    ),
    Log("parameter-golf", (500, 2500), 197.504, 384, world=8),
    Log(XL, (20, 120), 50, 32, tokens=100 * 6144),
    # Every fiftieth step tells the time; the batch is divided by the accumulation only later.
    Log(SQUAD, (51, 151), 60, 128),
    Log(SQUAD, (51, 151), 60, 128, (), ("python -m torch.distributed.launch", "torchrun")),
    Log(SQUAD, (51, 151), 60, 128, (), ("steps=1", "steps=4")),
    Log(SQUAD, (51, 151), 60, 256, (), (" --nproc", " --nnodes=2 --nproc")),
    # Older versions print the end of a range alone.
    Log(MXNET, (20, 120), 15, 3264),
    Log(MXNET, (20, 120), 15, 3264, (), (r"\[\d+-(\d+)\]", r"[\1]")),
    Log("ngc-mxnet-resnet50-intel", (50, 350), 360, 4096),
    # A speed that fits the world size.
    Log(NGC_4, (5, 12), 7 * 4096 / 10379.67, 4096, world=32, format="ngc-pytorch-resnet50"),
    # Its lines tell the time of one iteration each.
    Log(PYTORCH, (5, 10), 2.499, 2048, TWO_NODES, format="pytorch-resnet50"),
    # What we ran.
    Log("ran_huggingface", (20, 120), 105.996, 16, format="huggingface", off=0.01),
    Log("ran_lightning", (20, 120), 103.081, 8, ONE, format="lightning", off=0.01),
    Log("ran_keras2", (1, 3), 121.109, 96, AN_EPOCH, format="keras", off=0.01),
    Log("ran_keras2_verbose2", (1, 3), 121.111, 96, AN_EPOCH, format="keras", off=0.01),
    Log("ran_keras3", (1, 3), 121.333, 96, AN_EPOCH, format="keras", off=0.01),
    Log("ran_keras3_verbose2", (1, 3), 121.438, 96, AN_EPOCH, format="keras", off=0.01),
    Log("ran_pytorch_imagenet", (20, 120), 111.995, 8, ONE, format="pytorch-resnet50", off=0.01),
    Log("ran_mxnet_speedometer", (20, 120), 10.261, 8, ONE, format=MXNET, off=0.01),
    Log(
        "ran_tensorflow2_timehistory",
        (20, 120),
        10.853,
        8,
        ONE,
        format="tensorflow2-resnet50",
        off=0.01,
    ),
    Log("ran_mmengine", (20, 120), 106.525, 8, ONE, format="mmengine", off=0.01),
    Log("ran_reperf_resnet50", (20, 120), 54.269, 2, format="mllog", off=0.01),
]


def test_every_log_is_asked_about():
    public = {path.stem for path in (REAL / "public").glob("*.log")}
    ran = {path.stem for path in REAL.glob("ran_*")}
    asked = {log.log for log in MEASURED} | {case[0] for case in REFUSED}
    assert public | ran <= asked


@pytest.mark.parametrize("log", MEASURED, ids=[log.log for log in MEASURED])
def test_a_real_log_gives_what_its_lines_print(log):
    content, steps = read(log.log, log.edits), log.ends[1] - log.ends[0]
    found = measure_one(content, ends=log.ends, facts=log.facts)
    check(found, samples=log.batch * steps, seconds=pytest.approx(log.seconds, rel=log.off))
    assert found.format == log.format or log.log.startswith(found.format)
    assert log.world in (None, found.world_size)
    if log.tokens is not None:
        counted = measure_one(content, ends=log.ends, facts=log.facts, unit="tokens")
        check(counted, samples=log.tokens)


UNKNOWN = "the global batch is not known"
SPEEDS = "the printed speeds mean "
SINGLE = "its times are those of single iterations, and not every iteration is printed"
NO_TIMES = "the log prints neither time stamps nor durations"
ONE_DEVICE = (("batch_size", 128), ("nodes", 1), ("devices_per_node", 1))
UNTIMED = ("oneflow_resnet50_1n1g_b128_fp32_nots", "oneflow_bert_1n1g_nots")
REFUSED = [
    ("nanogpt", (1631, 1641), NO_LENGTH, UNKNOWN),
    # A line that overrides the configuration is lost: the tokens are not those of what is left.
    ("nanogpt", (1631, 1641), ("Overriding: block_size = .*\n", ""), UNKNOWN),
    ("nanogpt", (1631, 1641), ("Overriding: batch_size = .*\n", ""), UNKNOWN),
    ("build-nanogpt", (0, 3), (), UNKNOWN),
    ("build-nanogpt", (0, 2), ("(step    2)", r"HellaSwag accuracy: 1\n\1"), "evaluations lie"),
    ("modded-nanogpt-golf", (9650, 9800), ("seed:", "seq_len_schedule:1,2\nseed:"), UNKNOWN),
    ("paddledetection", (20, 120), (), UNKNOWN),
    ("gluoncv-stamped", (50, 150), (".* - INFO: ", ""), NO_TIMES),
    ("nanogpt-seldom", (2920, 2970), (), SINGLE),
    # What a program prints of its tokens must be those of its batch.
    ("llm-c", (1, 9), ("524288", "1048576", "=8", "=16"), SPEEDS + "512 "),
    (XL, (20, 120), ("12288", "24576"), SPEEDS + "64 samples a step"),
    (XL, (20, 120), (r".* step       80 .*\n", ""), "the time from"),
    # A version that prints its optimizer prints its number of nodes, too.
    ("litgpt", (1, 10), (r"{'devices'", " 'optimizer': 'AdamW',\n{'devices'"), UNKNOWN),
    ("litgpt-pretraining", (3050700, 3050900), (), "its times leave out the loading of data"),
    ("olmo", (1, 3), (), UNKNOWN),
    ("olmo", (1, 3), (".*1,048,576\n", ""), "the tokens of step 1 do not follow its line"),
    ("composer-in-minutes", (5, 105), (), SPEEDS),
    ("composer", (5, 105), (".*throughput/samples_per_sec.*", ""), "it prints no speed"),
    ("composer", (5, 105), (".*time/sample: .*", ""), NO_FORMAT),
    # Lines of two batches make no record.
    ("composer", (5, 105), (r"(?s)\t Train time/train: 0\.52.*?/batch: 104\n", ""), NO_FORMAT),
    ("tf-cnn-benchmarks", (20, 120), (r"\d(?=\n)", ""), NO_TIMES),
    (
        "tf-cnn-benchmarks",
        (20, 120),
        ("training", "forward only"),
        "the log says that its run trains nothing: it runs forward only",
    ),
    ("modded-nanogpt", (20, 120), ("^", "batch_size : int = 8 # sequences\n"), UNKNOWN),
    (SQUAD, (51, 151), ("/174", "/151"), "too short: it ends at iteration 101"),
    (SQUAD, (51, 151), (".*launch.*\n", ""), UNKNOWN),
    ("oneflow_bert_1n1g_nots", (19, 119), (), NO_TIMES),
    (
        "ngc-pytorch_resnet50_2n8g_b128_fp32",
        (20, 120),
        (),
        f"{SPEEDS}4096 images a step, the global batch is 2048 under a world size of 16",
    ),
    (NGC_4, (20, 120), (), "too short: it ends at iteration 12, the window at 120"),
    (
        "paddle_bert_fleetx",
        (20, 120),
        (),
        "the log fits fleetx-bert and paddle1-bert: say which it is with --format",
    ),
]


@pytest.mark.parametrize(("log", "ends", "edits", "reason"), REFUSED)
def test_a_real_log_that_cannot_be_measured_says_why(log, ends, edits, reason):
    check(measure_one(read(log, edits), ends=ends), reason)


@pytest.mark.parametrize(
    ("log", "how", "reason"),
    [
        (NGC_4, {"facts": TWO_NODES[1:]}, "number of nodes is 4 by the log, 2 by the command line"),
        (
            PYTORCH,
            {"ends": (5, 15), "facts": TWO_NODES},
            "..the time from iteration 10 to 13 is not",
        ),
        *(
            (one, {"facts": ONE_DEVICE, "method": "published"}, "..no time stamps")
            for one in UNTIMED
        ),
        (
            PYTORCH,
            {"facts": TWO_NODES, "method": "published"},
            "the published method needs at least 120 lines, the log has 7",
        ),
        # The validation line holds a speed, too, and is none of them.
        (
            "paddle_bert_fleetx",
            {"facts": TWO_NODES, "method": "published", "log_format": "paddle1-bert"},
            "the published method needs at least 120 lines, the log has 3",
        ),
    ],
)
def test_so_does_one_of_which_more_is_asked(log, how, reason):
    check(measure_one(read(log), **how), reason)


@pytest.mark.parametrize(
    ("name", "published", "ends"),
    [
        ("oneflow_resnet50_2n8g_b128_fp32", 5915.65, (20, 120)),
        ("oneflow_bert_1n1g_b24_fp32", 140.20, (19, 119)),
    ],
)
def test_published_repeats_are_reproduced(name, published, ends):
    found = measure_one(read(name))
    assert (round(found.throughput, 2), found.first, found.last) == (published, *ends)
    assert measure_one(read(name), method="published").throughput == published


def test_pytorch_lines_of_a_second_rank_are_not_taken_for_the_first_ones():
    facts = (("batch_size", 128), ("nodes", 4), ("devices_per_node", 8))
    results = measure(read("pytorch_resnet50_4n8g_b128_fp32"), facts=facts)
    assert [one.status for one in results] == ["refused", "refused"]


def test_epoch_times_need_the_size_of_an_epoch():
    content = read("pipedream_epoch_seconds_from_seed")
    assert {one.reason for one in measure(content, ends=(0, 1))} == {
        "the global batch is not known: neither log, record nor path says it; "
        "allowed: --batch-size and --topology, or --global-batch"
    }
    told = (("global_batch", 1000000),)
    seconds = [one.seconds for one in measure(content, ends=(0, 1), facts=told)]
    assert seconds == pytest.approx([144.396, 102.291, 2430.059])


def test_a_quoted_epoch_is_none():
    epochs = [f"Epoch {n}: {100 + n}.250 seconds" for n in range(6)]
    for at in range(1, len(epochs) + 1):
        lines = [*epochs[:at], "best run so far: Epoch 3: 7.000 seconds", *epochs[at:]]
        measured = measure_one(lines, ends=(1, 5), facts=(("global_batch", 1000),))
        assert measured.seconds == 102.25 + 103.25 + 104.25 + 105.25


HEADLESS = ("B=32.*\n", "")


@pytest.mark.parametrize(
    ("name", "edits", "batch", "said"),
    [
        ("speedrun", (), 32, "global batch is 512 by the log, 32 by the command line"),
        (
            "speedrun",
            ("B=32 ", "B=16 "),
            None,
            "the lines count 5.24e+07 tokens in the window, and a global batch of 256 by the log "
            "with 1024 tokens a sample by the log makes 2.62e+07",
        ),
        ("speedrun", HEADLESS, 512, "batch of 512 by the command line, a sample has"),
        ("speedrun", HEADLESS, 32, "batch of 32 by the command line, a sample has 1637"),
    ],
)
def test_tokens_that_lines_count_are_held_against_the_batch(name, edits, batch, said):
    facts = (("global_batch", batch),) if batch else ()
    found = measure_one(read(f"modded-nanogpt-{name}", edits), ends=(20, 120), facts=facts)
    assert said in (found.reason or found.warnings[0])
    assert (found.status == "ok") == (edits == HEADLESS)


def test_a_batch_from_which_the_length_of_a_sample_follows_is_said():
    """No line denies an eighth of the batch; whoever reads 8,192 tokens for GPT-2 does."""
    found = measure_one(read("build-nanogpt"), ends=(0, 3), facts=B64)
    assert found.warnings == (
        "implied-length: the log counts 524288 tokens a step; with a global batch of 64 by the "
        "command line, a sample has 8192 tokens",
    )


@pytest.mark.parametrize(("style", "warned"), [("torchvision", True), ("oneflow-resnet50", False)])
def test_a_batch_that_nothing_could_contradict_is_said(style, warned):
    found = measure_written(style, written(style))
    said = any(warning.startswith("given-batch: the command line") for warning in found.warnings)
    assert (found.status, said) == ("ok", warned)


def program(*settings: str, after: str) -> Edits:
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
SPLIT = LOADER + "args.batch_size, r)\nx.split(args.seq_len)"
IN_SEQUENCES, IN_TOKENS = "batch_size : int = 8*64", "batch_size = 8*64*1024"
LENGTH, LONG = "sequence_length : int = 1024", "train_seq_len = 48*1024"
PACKED = "train_batch_size: int = 2048 * 24 * 8"


@pytest.mark.parametrize(
    ("edits", "batch", "tokens", "world"),
    [
        (program(IN_SEQUENCES, LENGTH, after=SUMS), 512, 524288, None),
        (program(IN_TOKENS, "seq_len = 64*1024", after=SPLIT), 8, 524288, None),
        (program(LONG, after=WORLD), 8, 393216, 8),
        (("^", SWEEP), 512, 524288, 8),
        (program(PACKED, after=LOADER + "args.train_batch_size, x)"), None, 393216, None),
        # A program whose batch something else may set gives none.
        *(
            (edits, None, None, None)
            for edits in [
                # Nothing adds them up.
                program(IN_SEQUENCES, LENGTH, after=SUMS.replace("range", "xrange")),
                program(IN_SEQUENCES, LENGTH, after=SUMS + "\nimport argparse"),
                program(IN_SEQUENCES, LENGTH, after=SUMS + "\nargs.batch_size = 64"),
                program("batch_size : int = int(os.environ['B'])", LENGTH, after=SUMS),
                program("batch_size : int = 8*64 // 2", LENGTH, after=SUMS),
                program(LONG, after=WORLD + " or world_size == 1"),
                program(LONG, after=WORLD.replace("assert", "if")),
                # Some versions give their loader what one device reads.
                program(LONG, after=LOADER + "args.train_seq_len, 1)"),
            ]
        ),
    ],
)
def test_a_program_in_its_log_gives_the_batch_that_nothing_else_can_set(
    edits, batch, tokens, world
):
    log = read("modded-nanogpt", edits)
    found = measure_one(log, ends=(20, 120))
    check(found, "" if batch else UNKNOWN, samples=batch and 100 * batch)
    counted = measure_one(log, ends=(20, 120), unit="tokens")
    if tokens:
        check(counted, samples=100 * tokens, global_batch=batch, world_size=world)
    else:
        assert counted.status == "refused"


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
    check(found, "number of tokens in a step is 131072 by the log, 262144 by the log")


def test_the_clock_of_modded_nanogpt_that_is_set_back_is_not_crossed():
    found = measure_one(read("modded-nanogpt"), ends=(5, 105), facts=B64)
    check(found, "time steps back by 0.9 s")


def test_other_nodes_lines_are_of_other_ranks():
    lines = read(MXNET).decode().splitlines()
    others = [line.replace("Node[0]", "Node[1]").replace(",594", ",612") for line in lines]
    mixed = [line for pair in zip(others, lines, strict=True) for line in pair]
    assert measure_one(mixed).throughput == 21760


def test_tacotron2s_count_that_begins_again_is_that_of_another_epoch():
    name = "ngc-pytorch-tacotron2-nvlog"
    _, *again = (line.replace("start: 0", "start: 1") for line in written(name, 51, start=100))
    found = measure_one([*written(name, 51), *again], ends=(20, 51))
    check(found, seconds=31 * STEP, throughput=RATE)


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
    check(measure_written(name, changed), reason)


def test_mlperf_losses_in_front_of_a_batch_count_nothing():
    lines = written("mlperf-losses")
    check(measure_written("mlperf-losses", [lines[5], *lines]), first_printed=10)


def test_what_lightning_draws_behind_a_validation_of_an_epoch_is_no_training_of_it():
    lines = written("lightning")
    bar = "Validation DataLoader 0:  50%|#         | 1/2 [00:00<00:00, 4.00it/s]"
    measured = measure_written("lightning", [*lines[:60], bar, *lines[60:]])
    check(measured, "too short: it ends at iteration 59, the window at 120")


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
    found = measure_one([line], facts=(("global_batch", 32),))
    check(found, formats()[name].untimed, format=name)


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
    check(found, reason, format="olmo-core", seconds=seconds, samples=seconds and 4096 * 100)
