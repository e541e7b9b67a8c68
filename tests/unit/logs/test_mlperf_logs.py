"""What MLPerf's own logs say of batches, epochs, evaluations and their end."""

from math import inf

import pytest
from reperf.logs.events import evaluated_in, facts_in
from reperf.measuring.log_detection import reads_like_log

from tests.unit.logs.asking import measure, measure_one, measure_written
from tests.unit.logs.mlperf_lines import ABORTED, STOP, evaluation, event, says, tracked
from tests.unit.logs.written import RATE, STYLES, written


def widest(lines: list[str]):
    return measure_one([*lines, STOP], widest=True)


class TestTheEpochsOfUnet3d:
    """A batch of 16 pads an epoch of 168 samples to 176: 11 batches of 0.5 s each."""

    def ask(self, rate: float = 32.0, **said: int):
        head = says(global_batch_size=16, train_samples=168, **said)
        stats = (tracked(n, 5500 * n, rate, "epoch_num") for n in range(20, 161, 20))
        return measure_one([*head, *stats, STOP])

    def test_the_nearest_size_is_meant(self):
        measured = self.ask()
        assert (measured.samples, measured.throughput) == (17600, 32.0)

    def test_what_the_log_says_an_epoch_trains_rules(self):
        measured = self.ask(31.0, samples_per_epoch=176)
        assert (measured.samples, measured.throughput) == (17600, 32.0)
        assert measured.sources["epoch_trained"] == "the log"

    def test_speeds_that_deny_what_the_log_says_are_refused(self):
        assert self.ask(samples_per_epoch=192).reason == (
            "the printed speeds mean 176 samples a step, the global batch is 16: a step of this "
            "log is neither a batch nor a sample, nor an epoch of 192 samples"
        )

    @pytest.mark.parametrize(
        ("rate", "sizes"), [(31.0, "168 or 176"), (31.3, "176 or 168"), (31.6, "176 or 168")]
    )
    def test_a_speed_between_two_sizes_decides_nothing(self, rate, sizes):
        assert self.ask(rate).reason == (
            f"the printed speeds mean {rate * 5.5:.6g} samples a step, and nothing says which size "
            f"it has: {sizes}"
        )


class TestTheBatchesOfRetinanet:
    """Its `train_samples` are batches: 9,143 of 128 are the 1,170,301 images, filled up."""

    def ask(self, *head: str, speed: float = 115.0, batches: int = 9143, **how: object):
        took = round(1000 * 9143 * 128 / 460)
        said = {"global_batch_size": 128, "train_samples": batches}
        stats = [tracked(n, took * n, speed) for n in range(1, 7)]
        # An evaluation beside training ends the last epoch within seconds.
        stats.append(tracked(7, took * 6 + 6000, speed))
        lines = [*head, *says(submission_benchmark="ssd", **said), *stats, STOP]
        return measure_one(lines, widest=True, **how)

    def test_the_speed_of_one_device_fits_all_of_them(self):
        measured = self.ask("Namespace(amp=True, world_size=4, seed=1)")
        assert measured.throughput == pytest.approx(460.0, rel=1e-4)
        assert measured.sources["epoch_trained"] == "the log"
        told = self.ask(facts=(("world_size", 4),))
        assert told.throughput == pytest.approx(460.0, rel=1e-4)

    def test_without_a_number_of_devices_the_speed_fits_nothing(self):
        reason = self.ask().reason
        assert reason.startswith("the printed speeds mean 292608 samples a step")
        assert "one of 4 devices, --topology says so" in reason

    def test_batches_of_another_data_set_are_no_images(self):
        assert self.ask(speed=460.0, batches=4000).status == "refused"


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


@pytest.mark.parametrize(
    "argument", ["SOLVER.IMS_PER_BATCH 96", "['SOLVER.IMS_PER_BATCH', '96', 'TEST.IMS_PER_BATCH']"]
)
def test_mask_r_cnn_says_its_batch_among_its_arguments(argument):
    command = f"+ python train_mlperf.py {argument} TEST.IMS_PER_BATCH 8"
    measured = measure_one([command, *written("maskrcnn-benchmark")])
    assert (measured.status, measured.global_batch) == ("ok", 96)


@pytest.mark.parametrize("prefix", [":::MLLOG {}", ":::MLL 1.5 run_start", ":::MLPv0.5.0 ssd 1.5"])
def test_one_line_of_mlperfs_makes_a_log(prefix):
    assert reads_like_log(f"+ srun\n{prefix}\n".encode())
    assert not reads_like_log(f"+ srun\n{prefix[4:]}\n".encode())
    assert not reads_like_log(f"\0{prefix}\n".encode())


class TestARunWhoseEndAnotherRankTells:
    """The rank that evaluates, which is not the measured one."""

    LINES = tuple(f" 0: {line}" for line in written("mlperf")[:-1])
    END = f"56: {STOP}"

    def test_is_measured_wherever_that_end_stands(self):
        for at in (5, len(self.LINES)):
            measured = measure_written("mlperf", [*self.LINES[:at], self.END, *self.LINES[at:]])
            assert (measured.status, measured.throughput) == ("ok", RATE)

    def test_is_refused_where_nobody_tells_it_or_the_measured_rank_was_aborted(self):
        assert measure_written("mlperf", list(self.LINES)).status == "refused"
        ends = [f" 0: {STOP}".replace("success", "aborted"), self.END]
        assert measure_written("mlperf", [*self.LINES, *ends]).reason == ABORTED


class TestStepsThatCountTokens:
    """A batch of 16 sequences of 2048 tokens takes 0.5 s."""

    HEAD = tuple(says(global_batch_size=16, max_sequence_length=2048))

    def test_are_found_by_how_long_a_batch_took(self):
        def stats(took: float) -> list[str]:
            values = {"train_step_timing": took, "reduced_train_loss": 2.7}
            steps = range(1, 60)
            return [event("tracked_stats", values, 500 * n, step=n * 16 * 2048) for n in steps]

        measured = widest([*self.HEAD, *stats(0.5)])
        assert (measured.format, measured.throughput) == ("mlperf-steps", 32.0)
        assert measured.samples == 16 * (59 - 20)
        assert "nor" in widest([*self.HEAD, *stats(0.7)]).reason
        mean = event("tracked_stats", {"throughput": 32.0, "train_step_time": 0.5}, 9, step=0)
        assert widest([*self.HEAD, *stats(0.5)[:9], mean, *stats(0.5)[9:]]).throughput == 32.0

    @pytest.mark.parametrize("name", ["train_step_timing", "train_step_timing in s"])
    def test_are_measured_behind_twenty_batches_whatever_follows(self, name):
        """As gpt3 in v3.1 and v4.1, without losses; from step 41 on, more passes than it prints."""
        lines = [
            event("tracked_stats", {name: 0.5}, 500 * n + 100 * max(0, n - 40), step=n * 32768)
            for n in range(1, 160)
        ]
        lines = [*self.HEAD, *lines, STOP, tracked(159 * 32768, 99_000, 32.0)]
        measured = measure_one(lines, widest=True)
        assert (measured.format, measured.widest) == ("mlperf-steps", None)
        assert "the printed speeds mean" in measured.reason
        assert measure_one(lines, ends=(20 * 32768, 40 * 32768)).throughput == 32.0


def test_speeds_may_count_the_evaluations_before_them():
    """As BERT since v3.1: 800 samples in 10 s, and 2 s of evaluation, are printed as 800 / 12."""

    def ask(rate: float):
        lines = says(global_batch_size=8)
        for n in range(1, 9):
            lines.append(tracked(800 * n, 12_000 * n, rate, "epoch_num"))
            lines.append(event("eval_start", ms=12_000 * n, epoch_num=800 * n))
            lines.append(event("eval_stop", ms=12_000 * n + 2000))
        return widest(lines)

    measured = ask(800 / 12)
    assert (measured.status, measured.throughput, measured.evaluations) == ("ok", 80.0, 7)
    assert "the printed speeds mean" in ask(60.0).reason


def test_deepcams_losses_count_batches():
    losses = [
        event("train_loss", 2.1, 400 * n, epoch_num=1, step_num=n) for n in range(10, 151, 10)
    ]
    measured = measure_one([*says(global_batch_size=128), *losses, STOP])
    assert (measured.format, measured.throughput) == ("mlperf-losses", 320.0)


class TestEpochsThatAreOnlyStamped:
    """Epochs of 168 samples, of 7 batches of 24, take 2 s; an evaluation follows every tenth."""

    def lines(self, *, benchmark: str = "unet3d", batch: int = 24, first: int = 1) -> list[str]:
        lines = says(submission_benchmark=benchmark, global_batch_size=batch, train_samples=168)
        for n in range(60):
            if n % 10 == 0:
                lines += evaluation(2000 * n - 2, 2000 * n - 1)
                lines.append(event("block_start", ms=2000 * n, first_epoch_num=n + first))
            lines.append(event("epoch_start", ms=2000 * n + 1, epoch_num=n + first))
        return [*lines, event("block_start", ms=10**6, first_epoch_num=first)]

    @pytest.mark.parametrize(("first", "benchmark"), [(0, "cosmoflow"), (1, "unet3d"), (1, "oc20")])
    def test_are_measured_between_two_starts(self, first, benchmark):
        measured = widest(self.lines(first=first, benchmark=benchmark))
        assert (measured.format, measured.first, measured.last) == ("mlperf-passes", 3, 59)
        assert measured.throughput == pytest.approx(84.0, rel=0.001)

    def test_are_measured_beside_batches_that_are_seldom_printed(self):
        """As in rnnt of v1.1: a batch of every other epoch or so, with its time."""
        dll = "DLL 2021-10-19 05:43:{}.26 - epoch {} | iter 48/136 | loss 2 | utts/s 1 | took 9 s |"
        lines = self.lines(benchmark="rnnt")
        lines[60:60] = [dll.format(n + 10, n) for n in (8, 15, 23)]
        measured = widest(lines)
        assert (measured.format, measured.first, measured.last) == ("mlperf-passes", 3, 59)

    def test_are_refused_where_whole_batches_would_be_another_epoch(self):
        assert widest(self.lines(batch=16)).reason == (
            "the log does not say how many samples it trains in an epoch: 168 or 176 or 160"
        )

    @pytest.mark.parametrize("speed", [88.0, 80.0])
    def test_are_measured_where_a_printed_throughput_decides(self, speed):
        """11 batches of 16 an epoch; 10 where the last is dropped, as in H3C's rnnt of v3.0."""
        lines = self.lines(batch=16)
        for at in range(len(lines) - 1, 4, -1):
            if '"block_start"' in lines[at]:
                lines.insert(at, event("throughput", speed))
        assert widest(lines).throughput == pytest.approx(speed, rel=0.001)

    @pytest.mark.parametrize(("benchmark", "first"), [("bert", 1), ("unet3d", 335)])
    def test_what_may_be_no_epoch_is_not_read(self, benchmark, first):
        lines = self.lines(benchmark=benchmark, first=first)
        assert measure_one([*lines, STOP]).reason.startswith("no known format: its")


class TestEvaluationsThatCount:
    """As tinycorp's BERT: 10 batches of 8 take 5 s, the evaluation behind them 3 s."""

    def lines(self, *, samples: int = 80, batch: int = 8) -> list[str]:
        lines = says(global_batch_size=batch)
        for n in range(1, 20):
            done, at = samples * n, 8000 * n
            lines += [event("eval_start", ms=at, epoch_num=done, step_num=10 * n)]
            lines += [event("eval_stop", ms=at + 3000, epoch_count=done)]
            lines += [event("eval_accuracy", 0.4, at + 3000, epoch_num=done)]
        return [*lines, STOP]

    def test_are_measured_without_their_time(self):
        measured = measure_one(self.lines(), widest=True)
        assert (measured.format, measured.first, measured.last) == ("mlperf-evaluations", 20, 190)
        assert (measured.throughput, measured.evaluations) == (16.0, 17)
        assert measured.evaluated == 51.0

    @pytest.mark.parametrize("said", [{"samples": 88}, {"samples": 1}, {"batch": 16}])
    def test_what_counts_no_batches_is_not_read(self, said):
        assert measure_one(self.lines(**said)).reason.startswith("no known format")

    def test_one_that_does_not_end_is_refused(self):
        lost = ('"epoch_count": 800', '"epoch_num": 800}')
        lines = [line for line in self.lines() if not any(one in line for one in lost)]
        measured = measure_one(lines, ends=(80, 120))
        assert measured.reason.startswith("evaluations lie in the window: the first between ")


@pytest.mark.parametrize("program", ["mask_rcnn/mask_rcnn", "ssd/ssd"])
def test_blocks_in_which_devices_train_and_evaluate_are_refused(program):
    """As Google's: what is stamped as an evaluation is the host's part of it."""
    lines = says(global_batch_size=256, train_samples=118287)
    for n in range(12):
        at = 50_000 * n
        block = {"first_epoch_num": n, "epoch_count": 1, "file": f"models/{program}_main.py"}
        lines += [
            event("block_start", ms=at, **block),
            event("block_stop", ms=at + 40_000, **block),
        ]
        lines += evaluation(at + 45_000, at + 49_000)
    assert widest(lines).reason.startswith("no known format: its MLPerf lines stamp no stretch of")


def test_tinycorps_retinanet_is_measured_between_two_epochs():
    """12,191 batches of 96 an epoch, in 6,500 s, and an evaluation of 5,000 s."""
    lines = says(submission_benchmark="retinanet", global_batch_size=96, train_samples=12191)
    for n in range(1, 5):
        at = 11_500_000 * n
        for key, after in (
            ("epoch_start", 0),
            ("eval_start", 6_500_000),
            ("eval_stop", 11_500_000),
        ):
            lines.append(event(key, n, at + after, epoch_num=n))
    measured = widest(lines)
    assert (measured.format, measured.first, measured.last) == ("mlperf-passes", 1, 3)
    assert measured.throughput == pytest.approx(12191 * 96 / 6500)


def test_blocks_that_count_samples_are_measured_unless_their_starts_say_how_long_they_will_be():
    """10 batches of 8 a block, each a second long."""

    def ask(counted: int):
        lines = says(global_batch_size=8)
        for n in range(20):
            lines.append(event("block_start", ms=1000 * n, samples_count=counted * n))
            lines.append(event("block_stop", ms=1000 * n + 999, samples_count=80 * (n + 1)))
        return widest(lines)

    measured = ask(80)
    assert (measured.format, measured.throughput) == ("mlperf-blocks", 80.0)
    assert ask(16).status == "refused"


def test_blocks_that_count_steps_are_measured_without_what_lies_between_a_stop_and_a_start():
    """As Habana's stable_diffusion of v3.1: 100 batches in 21.5 s, a checkpoint every 1,000."""
    lines, at = says(global_batch_size=512), 0
    for step in range(0, 2500, 100):
        at += 57_000 if step and not step % 1000 else 10
        lines.append(event("block_start", "training_step", at, first_epoch_num=0, step_num=step))
        at += 21_550
        lines.append(event("block_stop", "training_step", at, step_num=step + 100))
    for step in range(0, 60, 10):
        lines.append(event("block_start", "validation_step", at + step, step_num=step))
    lines.append(STOP)
    without = measure_one(lines, widest=True)
    assert (without.format, without.first, without.last) == ("mlperf-blocks", 1000, 1900)
    assert without.throughput == pytest.approx(512 * 100 / 21.56)
    across = measure_one(lines, ends=(100, 2400))
    assert across.evaluated == pytest.approx(2 * 57)
    # The clock stands still while a checkpoint is saved; 10 ms between blocks are training's.
    assert across.throughput == pytest.approx(512 * 100 / 21.56, rel=1e-3)


def test_blocks_that_count_steps_beside_samples_are_no_fault():
    """As in stable_diffusion of v4.1, at which reperf stopped with a traceback."""
    lines = says(global_batch_size=8)
    for n in range(20):
        lines.append(
            event("block_stop", "training_step", 1000 * n, step_num=n, samples_count=8 * n)
        )
        lines.append(event("block_start", ms=1000 * n, samples_count=8 * n))
    assert measure_one([*lines, STOP]).format == "mlperf-blocks"


@pytest.mark.parametrize(
    ("head", "each", "steps"),
    [
        ({"submission_benchmark": "gpt3", "max_sequence_length": 2048}, 24 * 2048 * 2048, 24),
        ({"submission_benchmark": "openfold"}, 24 * 2048, 24),
        # A share of an epoch's 1,000 batches, of which the last is not full.
        ({"submission_benchmark": "dlrm_dcnv2", "train_samples": 1000 * 2048 - 3}, 0.024, 24),
        ({"submission_benchmark": "bert"}, 24, None),
    ],
)
def test_evaluations_are_measured_by_what_their_benchmark_calls_an_epoch(head, each, steps):
    """24 batches of 2048 samples take 490 s, an evaluation 66 s."""

    def ask(off: float):
        lines = says(**head, global_batch_size=2048)
        for n in range(1, 20):
            at, done = 556_000 * n, each * n + off
            lines.append(event("eval_start", ms=at, epoch_num=done))
            lines.append(event("eval_accuracy", 2.7, at + 60_000, epoch_num=done))
            lines.append(event("eval_stop", ms=at + 66_000, epoch_num=done))
        return measure_one([*lines, STOP], widest=True)

    measured = ask(0)
    if steps is None:
        assert measured.code == "unknown-format"
        return
    assert (measured.format, measured.first, measured.last) == ("mlperf-evaluations", 24, 456)
    assert measured.throughput == pytest.approx(24 * 2048 / 490)
    assert ask(each / 1000).status == "refused"


def test_blocks_that_hold_evaluations_without_a_start_are_refused():
    """As in Google's gpt3 of v3.1, by PAX: all lines at a block's end have the same stamp."""
    lines = says(submission_benchmark="gpt3", global_batch_size=8, max_sequence_length=64)
    for n in range(1, 30):
        lines.append(event("block_stop", ms=1000 * n, first_epoch_num=512 * (n - 1)))
        lines.append(event("eval_accuracy", 2.7, 1000 * n, epoch_num=512 * n))
        lines.append(event("block_start", ms=1000 * n, first_epoch_num=512 * n))
    assert measure_one([*lines, STOP], widest=True).code == "evaluations"


def test_a_window_is_found_between_pauses_that_the_printed_times_deny():
    """As in Cisco's llama31_8b of v5.1: steps count samples; each evaluation starts 5 s late."""
    lines, at = says(global_batch_size=64, max_sequence_length=8192), 0
    for n in range(1, 201):
        at += 500
        stats = {"train_step_time": 0.5, "reduced_train_loss": 9.0}
        lines.append(event("tracked_stats", stats, at, step=64 * n))
        if n % 50 == 0:
            at += 5_000
            lines += evaluation(at, at + 4_000)
            at += 4_000
    found = measure_one([*lines, STOP], widest=True)
    assert (found.reason, found.format, found.throughput) == ("", "mlperf-steps", 128.0)
    assert (found.first, found.last) == (64 * 51, 64 * 100)


class TestTimeToTrain:
    BEGIN = event("run_start", ms=1_500_000_000_000)
    END = event("run_stop", ms=1_500_000_123_456, status="success")
    LINES = written("mlperf")[:-1]

    def of(self, *lines: str) -> float | None:
        return measure_written("mlperf", list(lines)).time_to_train

    def test_is_from_start_to_stop(self):
        assert self.of(self.BEGIN, *self.LINES, self.END) == 123.456
        assert self.of(*self.LINES[:1], self.BEGIN, *self.LINES[1:], self.END) == 123.456
        begin = ':::MLL 1500000000.000 run_start: {"value": null}'
        end = ':::MLL 1500000007.5 run_stop: {"value": null, "metadata": {"status": "success"}}'
        assert self.of(begin, *self.LINES, end) == 7.5
        finer = self.END.replace("123456,", "123456.250000,")  # as Intel's in v0.7
        assert self.of(self.BEGIN, *self.LINES, finer) == 123.456

    def test_is_none_unless_both_are_said_once(self):
        assert self.of(*self.LINES, self.END) is None
        assert self.of(self.BEGIN, *self.LINES) is None
        assert self.of(self.BEGIN, *self.LINES, self.END.replace("success", "aborted")) is None
        later = event("run_start", ms=1_500_000_000_999)
        assert self.of(self.BEGIN, later, *self.LINES, self.END) is None

    def test_is_not_that_of_our_own_runs(self):
        begin = event("run_start", ms=1_600_180_000_000)
        measured = measure_written("mllog", [begin, *written("mllog")])
        assert (measured.status, measured.time_to_train) == ("ok", None)

    def test_each_of_two_runs_has_its_own(self):
        begin = event("run_start", ms=1_500_003_600_000)
        end = event("run_stop", ms=1_500_003_601_000, status="success")
        again = [begin, *written("mlperf", start=3600.0)[:-1], end]
        text = "".join(f"{line}\n" for line in [self.BEGIN, *self.LINES, self.END, *again])
        found = measure(text.encode(), log_format="mlperf", facts=STYLES["mlperf"].facts)
        assert [one.time_to_train for one in found] == [123.456, 1.0]
