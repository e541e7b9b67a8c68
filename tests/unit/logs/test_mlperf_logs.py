"""What MLPerf's own logs say of batches, epochs, evaluations and their end."""

from functools import partial
from math import inf

import pytest
from reperf.logs.events import evaluated_in, facts_in
from reperf.measuring.log_detection import reads_like_log

from tests.unit.logs.asking import case, cases, check, measure, measure_one, measure_written
from tests.unit.logs.mlperf_lines import (
    ABORTED,
    HEAD,
    STOP,
    again,
    evaluation,
    event,
    says,
    tracked,
)
from tests.unit.logs.written import RATE, written

UNKNOWN, NO_STRETCH = "no known format", "no known format: its MLPerf lines stamp no stretch of"
EVERYWHERE = "evaluations lie in every stretch of the log"


def unet3d(rate: float = 32.0, **said: int) -> list[str]:
    """A batch of 16 pads an epoch of 168 samples to 176: 11 batches of 0.5 s each."""
    head = says(global_batch_size=16, train_samples=168, **said)
    return [*head, *(tracked(n, 5500 * n, rate, "epoch_num") for n in range(20, 161, 20))]


def retinanet(*head: str, speed: float = 115.0, batches: int = 9143) -> list[str]:
    """Its `train_samples` are batches: 9,143 of 128 are the 1,170,301 images, filled up."""
    took = round(1000 * 9143 * 128 / 460)
    said = says(submission_benchmark="ssd", global_batch_size=128, train_samples=batches)
    stats = [tracked(n, took * n, speed) for n in range(1, 7)]
    # An evaluation beside training ends the last epoch within seconds.
    return [*head, *said, *stats, tracked(7, took * 6 + 6000, speed)]


def tinycorps() -> list[str]:
    """12,191 batches of 96 an epoch, in 6,500 s, and an evaluation of 5,000 s."""
    head = says(submission_benchmark="retinanet", global_batch_size=96, train_samples=12191)
    stamps = {"epoch_start": 0, "eval_start": 6_500_000, "eval_stop": 11_500_000}
    events = ((key, after, {"epoch_num": 1}) for key, after in stamps.items())
    return head + again(11_500_000, range(1, 5), *events)


TOKENS = says(global_batch_size=16, max_sequence_length=2048)


def tokens(took: float = 0.5) -> list[str]:
    """Steps count tokens: a batch of 16 sequences of 2048 takes 0.5 s."""
    stats = {"train_step_timing": took, "reduced_train_loss": 2.7}
    return TOKENS + again(500, range(1, 60), ("tracked_stats", 0, {"step": 1 << 15}, stats))


def untold(name: str) -> list[str]:
    """As gpt3 in v3.1 and v4.1, without losses; from step 41 on, more passes than it prints."""
    step = "tracked_stats", 0, {"step": 1 << 15}, {name: 0.5}
    late = "tracked_stats", -4000, *step[2:]
    steps = again(500, range(1, 41), step) + again(600, range(41, 160), late)
    return [*TOKENS, *steps, STOP, tracked(159 << 15, 99_000, 32.0)]


def late_evaluations() -> list[str]:
    """As in Cisco's llama31_8b of v5.1: steps count samples; each evaluation starts 5 s late."""
    stats = {"train_step_time": 0.5, "reduced_train_loss": 9.0}
    steps = [("tracked_stats", 500 * n, {"step": (3200, 64 * n)}, stats) for n in range(1, 51)]
    evaluation = ("eval_start", 30_000, {}), ("eval_stop", 34_000, {})
    head = says(global_batch_size=64, max_sequence_length=8192)
    return head + again(34_000, range(4), *steps, *evaluation)


def evaluated_bert(rate: float) -> list[str]:
    """As since v3.1: 800 samples in 10 s, and 2 s of evaluation, are printed as 800 / 12."""
    counts = {"epoch_num": 800}
    stats = ("tracked_stats", 0, counts, {"throughput": rate})
    evaluation = ("eval_start", 0, counts), ("eval_stop", 2000, counts)
    return says(global_batch_size=8) + again(12_000, range(1, 9), stats, *evaluation)


def stamped_epochs(
    benchmark: str = "unet3d", batch: int = 24, first: int = 1, speed: float = 0
) -> list[str]:
    """Epochs of 168 samples, of 7 batches of 24, take 2 s; an evaluation follows every tenth."""
    head = says(submission_benchmark=benchmark, global_batch_size=batch, train_samples=168)
    rate = [("throughput", 0, {}, speed)] * bool(speed)
    events = ("eval_start", -2, {}), ("eval_stop", -1, {}), *rate
    events += (("block_start", 0, {"first_epoch_num": (10, first)}),)
    epochs = [("epoch_start", 2000 * n + 1, {"epoch_num": (10, n + first)}) for n in range(10)]
    again_from_one = event("block_start", ms=10**6, first_epoch_num=first)
    return [*head, *again(20_000, range(6), *events, *epochs), again_from_one]


def evaluations(samples: int = 80, batch: int = 8) -> list[str]:
    """As tinycorp's BERT: 10 batches of 8 take 5 s, the evaluation behind them 3 s."""
    counted = {"epoch_num": samples}
    start = ("eval_start", 0, {**counted, "step_num": 10})
    ends = ("eval_stop", 3000, {"epoch_count": samples}), ("eval_accuracy", 3000, counted)
    return says(global_batch_size=batch) + again(8000, range(1, 20), start, *ends)


def by_benchmark(each: float, off: float = 0, **head: object) -> list[str]:
    """24 batches of 2048 samples take 490 s, an evaluation 66 s."""
    stamps = {"eval_start": 0, "eval_accuracy": 60_000, "eval_stop": 66_000}
    events = [(key, after, {"epoch_num": (each, off)}) for key, after in stamps.items()]
    return says(**head, global_batch_size=2048) + again(556_000, range(1, 20), *events)


def googles() -> list[str]:
    """Devices train and evaluate in a block: an evaluation's stamps are of the host's part."""
    block = {"first_epoch_num": 1}
    events = ("block_start", 0, block), ("block_stop", 40_000, block), ("eval_start", 45_000, {})
    head = says(global_batch_size=256, train_samples=118287)
    return head + again(50_000, range(12), *events, ("eval_stop", 49_000, {}))


def blocks(counted: int) -> list[str]:
    """10 batches of 8 a block, each a second long."""
    stop = ("block_stop", 999, {"samples_count": (80, 80)})
    start = ("block_start", 0, {"samples_count": counted})
    return says(global_batch_size=8) + again(1000, range(20), start, stop)


def paxs() -> list[str]:
    """As Google's gpt3 of v3.1: all lines at a block's end have the same stamp."""
    stop = ("block_stop", 0, {"first_epoch_num": (512, -512)})
    events = ("eval_accuracy", 0, {"epoch_num": 512}), ("block_start", 0, {"first_epoch_num": 512})
    head = says(submission_benchmark="gpt3", global_batch_size=8, max_sequence_length=64)
    return head + again(1000, range(1, 30), stop, *events)


def habanas() -> list[str]:
    """stable_diffusion of v3.1: 100 batches in 21.5 s, a checkpoint every 1,000."""
    events = []
    for n in range(10):
        start, stop = {"step_num": (1000, 100 * n)}, {"step_num": (1000, 100 * n + 100)}
        events.append(("block_start", 21_560 * n, start | {"first_epoch_num": 0}, "training_step"))
        events.append(("block_stop", 21_560 * n + 21_550, stop, "training_step"))
    ten = again(215_600 + 56_990, range(2), *events)
    five = again(215_600 + 56_990, range(2, 3), *events[:10])
    validation = again(1, range(0, 60, 10), ("block_start", 0, {"step_num": 1}, "validation_step"))
    return [*says(global_batch_size=512), *ten, *five, *validation]


def losses() -> list[str]:
    """The throughputs that it prints beside them are each behind an evaluation."""
    lines = says(global_batch_size=8)
    for step in range(10, 401, 10):
        lines.append(event("train_loss", 1.3, 1500 * step, samples_count=8 * step))
        if step % 190 == 0:
            lines += [*evaluation(0, 9000), tracked(step, 1500 * step + 9001, 5.3)]
    return lines


def epochs(rate: float, batch: int = 56) -> list[str]:
    head = says(global_batch_size=batch, train_samples=168)
    return head + [tracked(n, n * 1000, rate) for n in range(20, 201, 20)]


def queued(took: int, evaluations: int = 1) -> list[str]:
    """MXNet on hundreds of nodes: an epoch's line comes as soon as all its batches are queued."""
    rate, over = {"throughput": 168_000 / took}, 4000 + 100 * evaluations
    lines = [("tracked_stats", n * took, {"step": (4, n)}, rate) for n in range(1, 5)]
    evaluation = ("eval_start", 4000, {}), ("eval_stop", over, {})
    return HEAD + again(over, range(10), *lines, *evaluation)


DLL = "DLL 2021-10-19 05:43:{}.26 - epoch {} | iter 48/136 | loss 2 | utts/s 1 | took 9 s |"
RNNT, SELDOM = stamped_epochs("rnnt"), [DLL.format(n + 10, n) for n in (8, 15, 23)]
LOSSES = again(400, range(10, 151, 10), ("train_loss", 0, {"step_num": 1}))
EVALUATED = [[tracked(n, n * 10_000, 33.6), *evaluation(0, 5000)] for n in range(1, 9)]
MEAN = event("tracked_stats", {"throughput": 32.0, "train_step_time": 0.5}, 9, step=0)
BETWEEN = "the printed speeds mean {} samples a step, and nothing says which size it has: {}"
NEITHER = "a step of this log is neither a batch nor a sample, nor an epoch of "
SPEEDS = "the printed speeds mean "
OTHER_SIZES = "the log does not say how many samples it trains in an epoch: 168 or 176 or 160"
QUEUED = (
    "the window is 2.02 times as fast as the run from its start on, evaluations left out: its "
    "lines seem to be printed before their work is done"
)
ALL = partial(case, wide=True)
PASSES = partial(ALL, format="mlperf-passes", last=59)
IN_BATCHES = partial(
    ALL, format="mlperf-evaluations", first=24, last=456, throughput=24 * 2048 / 490
)
GPT3 = {"submission_benchmark": "gpt3", "max_sequence_length": 2048}
# A share of an epoch's 1,000 batches, of which the last is not full.
DLRM = {"submission_benchmark": "dlrm_dcnv2", "train_samples": 1000 * 2048 - 3}
WORLD = "Namespace(amp=True, world_size=4, seed=1)"
FOUR = (("world_size", 4),)
ABOUT_84, ABOUT_460 = pytest.approx(84, rel=1e-3), pytest.approx(460, rel=1e-4)
TAKING = ("train_step_timing", "train_step_timing in s")


@cases(
    case("unet3d: the nearest size is meant", unet3d(), samples=17600, throughput=32.0),
    case("unet3d: the log's word", unet3d(31.0, samples_per_epoch=176), samples=17600),
    case(
        "unet3d: speeds that deny what the log says",
        unet3d(samples_per_epoch=192),
        f"{SPEEDS}176 samples a step, the global batch is 16: {NEITHER}192 samples",
    ),
    case("unet3d: nearly 168", unet3d(31.0), BETWEEN.format("170.5", "168 or 176")),
    case("unet3d: beyond the middle", unet3d(31.3), BETWEEN.format("172.15", "176 or 168")),
    case("unet3d: nearly 176", unet3d(31.6), BETWEEN.format("173.8", "176 or 168")),
    ALL("retinanet: the speed of one device of four", retinanet(WORLD), throughput=ABOUT_460),
    ALL("retinanet: devices that a user gives", retinanet(), facts=FOUR, throughput=ABOUT_460),
    ALL("retinanet: no devices", retinanet(), "..one of 4 devices, --topology says so"),
    ALL("retinanet: another data set", retinanet(speed=460.0, batches=4000), SPEEDS),
    PASSES("tinycorp's epochs", tinycorps(), first=1, last=3, throughput=12191 * 96 / 6500),
    ALL("steps of tokens", tokens(), format="mlperf-steps", throughput=32.0, samples=16 * 39),
    ALL("steps of tokens of another time", tokens(0.7), "..nor"),
    ALL("a mean among steps", [*tokens()[:11], MEAN, *tokens()[11:]], throughput=32.0),
    *(
        ALL(f"{name}: all", untold(name), f"..{SPEEDS}", format="mlperf-steps", widest=None)
        for name in TAKING
    ),
    *(
        case(f"{name}: 20 batches", untold(name), ends=(20 << 15, 40 << 15), throughput=32.0)
        for name in TAKING
    ),
    ALL("speeds with evaluations", evaluated_bert(800 / 12), throughput=80.0, evaluations=7),
    ALL("speeds with and without none", evaluated_bert(60.0), f"..{SPEEDS}"),
    case(
        "deepcam's losses",
        says(global_batch_size=128) + LOSSES,
        format="mlperf-losses",
        throughput=320.0,
    ),
    case("losses between evaluations", losses(), widest=(200, 380), throughput=8 / 1.5),
    case(
        "losses of another batch",
        losses(),
        "global batch is 8 by the log, 16 by the command line",
        facts=(("global_batch", 16),),
    ),
    PASSES("cosmoflow", stamped_epochs("cosmoflow", first=0), first=3, throughput=ABOUT_84),
    PASSES("unet3d", stamped_epochs(), first=3, throughput=ABOUT_84),
    PASSES("oc20", stamped_epochs("oc20"), first=3, throughput=ABOUT_84),
    # As in rnnt of v1.1: a batch of every other epoch or so, with its time.
    PASSES("seldom a batch", [*RNNT[:60], *SELDOM, *RNNT[60:]], first=3, throughput=ABOUT_84),
    ALL("stamped epochs of several sizes", stamped_epochs(batch=16), OTHER_SIZES),
    # 11 batches of 16 an epoch; 10 where the last is dropped, as in H3C's rnnt of v3.0.
    *(
        ALL(
            f"whose size {x} decides",
            stamped_epochs(batch=16, speed=x),
            throughput=pytest.approx(x, rel=1e-3),
        )
        for x in (88.0, 80.0)
    ),
    case("what bert calls an epoch", stamped_epochs("bert"), f"{UNKNOWN}: its"),
    case("a first epoch that is none", stamped_epochs(first=335), f"{UNKNOWN}: its"),
    ALL(
        "evaluations that count",
        evaluations(),
        first=20,
        last=190,
        throughput=16.0,
        evaluations=17,
        evaluated=51.0,
    ),
    case("evaluations of parts of a batch", evaluations(88), UNKNOWN),
    case("evaluations of one sample", evaluations(1), UNKNOWN),
    case("evaluations of another batch", evaluations(batch=16), UNKNOWN),
    case(
        "an evaluation that does not end",
        [x for x in evaluations() if '_count": 800' not in x and '"epoch_num": 800}' not in x],
        "evaluations lie in the window: the first between ",
        ends=(80, 120),
    ),
    IN_BATCHES("gpt3's evaluations", by_benchmark(24 << 22, **GPT3)),
    IN_BATCHES("openfold's", by_benchmark(24 << 11, submission_benchmark="openfold")),
    IN_BATCHES("dlrm's", by_benchmark(0.024, **DLRM)),
    ALL("gpt3's, off", by_benchmark(24 << 22, 100_663, **GPT3), UNKNOWN),
    ALL("dlrm's, off", by_benchmark(0.024, 0.000024, **DLRM), UNKNOWN),
    ALL("bert's", by_benchmark(24, submission_benchmark="bert"), UNKNOWN, code="unknown-format"),
    ALL("blocks in which Google's devices evaluate", googles(), NO_STRETCH),
    ALL("blocks of samples", blocks(80), format="mlperf-blocks", throughput=80.0),
    ALL("blocks whose starts say how long they will be", blocks(16), "the log allows no window"),
    ALL(
        "between two checkpoints",
        habanas(),
        format="mlperf-blocks",
        first=1000,
        last=1900,
        throughput=512 * 100 / 21.56,
    ),
    case(
        "without what lies between a stop and a start",  # 10 ms between blocks are training's
        habanas(),
        ends=(100, 2400),
        evaluated=114.0,
        throughput=pytest.approx(512 * 100 / 21.56, rel=1e-3),
    ),
    ALL("evaluations in blocks, without a start", paxs(), "evaluations", code="evaluations"),
    ALL("between pauses", late_evaluations(), throughput=128.0, first=64 * 51, last=64 * 100),
    case("epochs as large as the log says", epochs(168.0), samples=100 * 168),
    case("epochs of whole batches", epochs(240.0, 80), samples=100 * 240),
    case(
        "speeds that fit nothing",
        epochs(490.0),
        f"{SPEEDS}490 samples a step, the global batch is 56: {NEITHER}168 samples",
    ),
    # MiniGo counts generations and prints how many it makes a second.
    case(
        "a number that goes up by one is no sample",
        [event("train_samples", 1_000_000), *(tracked(n, n * 1000, 1.0) for n in range(1, 201))],
        "the global batch is not known",
    ),
    ALL(
        "a warm-up in epochs of 3 batches",
        [*HEAD, *(tracked(n, n * 1000, 168.0) for n in range(1, 60))],
        widest=(7, 59),
    ),
    ALL(
        "a warm-up in samples",
        [*HEAD, *(tracked(n * 560, n * 1000, 560.0, "epoch_num") for n in range(1, 60))],
        widest=(2 * 560, 59 * 560),
    ),
    case("evaluations are the reason", sum(EVALUATED, HEAD), EVERYWHERE, widest=None),
    case("work that is only queued", queued(470), QUEUED, ends=(9, 12), widest=None),
    case("half is queued", queued(475), ends=(9, 12), throughput=168_000 / 475, widest=(9, 12)),
    case("done, and much evaluated", queued(1000, 100), ends=(9, 12), throughput=168.0),
)
def test_a_submission_gives_what_its_lines_count_or_says_why_not(log, how, reason, expected):
    check(measure_one([*log, STOP], **how), reason, **expected)


def test_blocks_that_count_steps_beside_samples_are_no_fault():
    """As in stable_diffusion of v4.1, at which reperf stopped with a traceback."""
    stop = ("block_stop", 0, {"step_num": 1, "samples_count": 8}, "training_step")
    lines = again(1000, range(20), stop, ("block_start", 0, {"samples_count": 8}))
    assert measure_one([*says(global_batch_size=8), *lines, STOP]).format == "mlperf-blocks"


def test_what_an_epoch_trains_is_the_logs_word():
    for lines in (unet3d(31.0, samples_per_epoch=176), retinanet(WORLD)):
        measured = measure_one([*lines, STOP], widest=True)
        assert measured.sources["epoch_trained"] == "the log"


@pytest.mark.parametrize(
    "line",
    [
        ':::MLL 1560881734.718 global_batch_size: {"value": 1664, "metadata": {"lineno": 1112}}',
        ":::MLPv0.5.0 resnet 1543785258.951 (train.py:26) global_batch_size: 1664",
        ':::MLLOG {"key": "global_batch_size", "value": 1664}',
    ],
)
def test_every_version_says_the_global_batch(line):
    assert list(facts_in(f"{line}\n".encode())) == [("global_batch", 1664)]


START, STOPPED = evaluation(1000, 3000)
NEWER = ':::MLL 15{} eval_{}: {{"value": null, "metadata": {{"epoch_num": 1}}}}'
OLD = ":::MLPv0.5.0 ssd 15{} (main.py:43) eval_{}: 32"
BARE = "[{}, eval_{}, 0.04, ]"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ((START, event("eval_accuracy", 0.7, 2500), STOPPED), (1, 2.0)),
        ((START,), (1, inf)),
        ((STOPPED,), (1, inf)),
        ((NEWER.format("33.5", "start"), NEWER.format("37.0", "stop")), (1, 3.5)),
        ((NEWER.format("33.5", "start"),), (1, inf)),
        ((OLD.format("48.25", "start"), OLD.format("50.75", "stop")), (1, 2.5)),
        ((BARE.format(5000.5, "start"), BARE.format(6000.5, "accuracy")), (1, 1.0)),
        ((START, STOPPED, BARE.format(5000.5, "start"), BARE.format(6000.5, "stop")), (2, 3.0)),
        (("nothing of the kind",), (0, 0.0)),
    ],
)
def test_every_version_says_when_it_evaluates(lines, found):
    assert evaluated_in("\n".join(lines).encode())[0] == found


@pytest.mark.parametrize("prefix", [":::MLLOG {}", ":::MLL 1.5 run_start", ":::MLPv0.5.0 ssd 1.5"])
def test_one_line_of_mlperfs_makes_a_log(prefix):
    assert reads_like_log(f"+ srun\n{prefix}\n".encode())
    assert not reads_like_log(f"+ srun\n{prefix[4:]}\n".encode())
    assert not reads_like_log(f"\0{prefix}\n".encode())


LINES = written("mlperf")[:-1]
LABELLED, OTHERS_END = [f" 0: {line}" for line in LINES], f"56: {STOP}"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        # Another rank evaluates, and tells the end of the run wherever that stands.
        ([*LABELLED[:5], OTHERS_END, *LABELLED[5:]], ""),
        ([*LABELLED, OTHERS_END], ""),
        (LABELLED, "the end of the run is not in the log"),
        ([*LABELLED, f" 0: {STOP}".replace("success", "aborted"), OTHERS_END], ABORTED),
        *(
            ([*LINES, STOP.replace("success", status)], ABORTED.replace("aborted", status))
            for status in ("aborted", "failed", "SUCCESS")
        ),
    ],
)
def test_a_run_whose_success_no_rank_tells_is_refused(lines, reason):
    check(measure_written("mlperf", lines), reason, throughput=None if reason else RATE)


BEGIN = event("run_start", ms=1_500_000_000_000)
END = event("run_stop", ms=1_500_000_123_456, status="success")
OLD_BEGIN = ':::MLL 1500000000.000 run_start: {"value": null}'
OLD_END = ':::MLL 1500000007.5 run_stop: {"value": null, "metadata": {"status": "success"}}'


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        ([BEGIN, *LINES, END], 123.456),
        ([*LINES[:1], BEGIN, *LINES[1:], END], 123.456),
        ([OLD_BEGIN, *LINES, OLD_END], 7.5),
        ([BEGIN, *LINES, END.replace("123456,", "123456.250000,")], 123.456),  # as Intel's in v0.7
        ([*LINES, END], None),
        ([BEGIN, *LINES], None),
        ([BEGIN, *LINES, END.replace("success", "aborted")], None),
        ([BEGIN, event("run_start", ms=1_500_000_000_999), *LINES, END], None),
    ],
)
def test_the_time_to_train_is_from_start_to_stop_where_each_is_said_once(lines, seconds):
    assert measure_written("mlperf", lines).time_to_train == seconds


def test_the_time_to_train_is_of_each_run_and_not_of_ours():
    check(measure_written("mllog", [BEGIN, *written("mllog")]), time_to_train=None)
    end = event("run_stop", ms=1_500_003_601_000, status="success")
    second = [event("run_start", ms=1_500_003_600_000), *written("mlperf", start=3600.0)[:-1], end]
    found = measure([BEGIN, *LINES, END, *second], log_format="mlperf")
    assert [one.time_to_train for one in found] == [123.456, 1.0]
