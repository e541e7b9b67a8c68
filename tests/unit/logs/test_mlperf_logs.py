"""What MLPerf's own logs say of batches, epochs, evaluations and their end."""

import json
from math import inf

import pytest
from reperf.logs.events import evaluated_in, facts_in
from reperf.measuring.likeness import reads_like_log

from tests.unit.logs.asking import measure, measure_one, measure_written
from tests.unit.logs.written import RATE, STYLES, written

STOP = ("run_stop", None, {"status": "success"})


def event(key: str, value: object = None, metadata: dict | None = None, *, ms: int = 0) -> str:
    """One line as mlperf_logging writes it."""
    fields = {"namespace": "", "time_ms": ms, "event_type": "POINT_IN_TIME", "key": key}
    return ":::MLLOG " + json.dumps({**fields, "value": value, "metadata": metadata or {}})


class TestTheEpochsOfUnet3d:
    """A batch of 16 pads an epoch of 168 samples to 176: 11 batches of 0.5 s each."""

    def lines(self, *, trained: int | None, rate: float = 32.0, took: float = 5.5) -> list[str]:
        said = [] if trained is None else [event("samples_per_epoch", trained)]
        stats = [
            event("tracked_stats", {"throughput": rate}, {"epoch_num": n}, ms=int(1000 * took * n))
            for n in range(20, 161, 20)
        ]
        head = [event("global_batch_size", 16), event("train_samples", 168)]
        return [*head, *said, *stats, event(*STOP)]

    def test_the_nearest_size_is_meant(self):
        measured = measure_one(self.lines(trained=None))
        assert (measured.samples, measured.throughput) == (17600, 32.0)

    def test_what_the_log_says_an_epoch_trains_rules(self):
        measured = measure_one(self.lines(trained=176, rate=31.0))
        assert (measured.samples, measured.throughput) == (17600, 32.0)
        assert measured.sources["epoch_trained"] == "the log"

    def test_speeds_that_deny_what_the_log_says_are_refused(self):
        measured = measure_one(self.lines(trained=192))
        assert measured.reason == (
            "the printed speeds mean 176 samples a step, the global batch is 16: a step of this "
            "log is neither a batch nor a sample, nor an epoch of 192 samples"
        )

    def test_a_last_epoch_that_is_cut_is_named(self):
        """As in SSD of v2.1, where train_samples counts batches and speeds are of one device."""
        epochs = [(5.5 * 20 * n, n) for n in range(1, 7)] + [(5.5 * 120 + 1, 7)]
        stats = [
            event("tracked_stats", {"throughput": 32}, {"step": n}, ms=int(1000 * at))
            for at, n in epochs
        ]
        head = [event("global_batch_size", 16), event("train_samples", 11)]
        measured = measure_one([*head, *stats, event(*STOP)])
        assert "its steps are not of one size: 6 to 7 means 32, most mean 3520" in measured.reason

    @pytest.mark.parametrize("rate", [31.0, 31.3, 31.6])
    def test_a_speed_between_two_sizes_decides_nothing(self, rate):
        measured = measure_one(self.lines(trained=None, rate=rate))
        assert measured.reason == (
            f"the printed speeds mean {rate * 5.5:.6g} samples a step, and nothing says which size "
            f"it has: {'168 or 176' if rate * 5.5 < 171.9 else '176 or 168'}"
        )


class TestTheBatchesOfRetinanet:
    """Its `train_samples` are batches: 9,143 of 128 are the 1,170,301 images, filled up."""

    def lines(self, *, devices: str = "", speed: float = 115.0, batches: int = 9143) -> list[str]:
        took = 9143 * 128 / 460.0
        stats = [
            event("tracked_stats", {"throughput": speed}, {"step": n}, ms=int(1000 * took * n))
            for n in range(1, 7)
        ]
        # An evaluation beside training ends the last epoch within seconds.
        stats.append(
            event(
                "tracked_stats", {"throughput": speed}, {"step": 7}, ms=int(1000 * (took * 6 + 6))
            )
        )
        said = [("submission_benchmark", "ssd"), ("global_batch_size", 128)]
        head = [event(*one) for one in (*said, ("train_samples", batches))]
        return [devices, *head, *stats, event(*STOP)]

    def test_the_speed_of_one_device_fits_all_of_them(self):
        lines = self.lines(devices="Namespace(amp=True, world_size=4, seed=1)")
        measured = measure_one(lines, widest=True)
        assert measured.status == "ok"
        assert measured.throughput == pytest.approx(460.0, rel=1e-4)
        assert measured.sources["epoch_trained"] == "the log"

    def test_without_a_number_of_devices_the_speed_fits_nothing(self):
        measured = measure_one(self.lines(), widest=True)
        assert measured.status == "refused"
        assert measured.reason.startswith("the printed speeds mean 292608 samples a step")
        assert "one of 4 devices, --topology says so" in measured.reason

    def test_whoever_measures_may_say_how_many_devices_there_were(self):
        measured = measure_one(self.lines(), widest=True, facts=(("world_size", 4),))
        assert measured.throughput == pytest.approx(460.0, rel=1e-4)

    def test_batches_of_another_data_set_are_no_images(self):
        measured = measure_one(self.lines(speed=460.0, batches=4000), widest=True)
        assert measured.status == "refused"


@pytest.mark.parametrize(
    "line",
    [
        ":::MLL 1560881734.718 global_batch_size: {value}",
        ":::MLPv0.5.0 resnet 1543785258.951 (train.py:26) global_batch_size: 1664",
        ':::MLLOG {"key": "global_batch_size", "value": 1664}',
    ],
)
def test_every_version_says_the_global_batch(line):
    text = line.replace("{value}", '{"value": 1664, "metadata": {"lineno": 1112}}')
    assert list(facts_in(f"{text}\n".encode())) == [("global_batch", 1664)]


def test_every_version_says_when_it_evaluates():
    old = b":::MLPv0.5.0 ssd 1544240748.25 (main.py:43) eval_start: 32\n"
    old += b":::MLPv0.5.0 ssd 1544240750.75 (main.py:24) eval_stop: 32\n"
    newer = b':::MLL 1558421033.5 eval_start: {"value": null, "metadata": {"epoch_num": 1}}\n'
    both = newer + newer.replace(b"start", b"stop").replace(b"33.5", b"37.0")
    found = [evaluated_in(text)[0].seconds for text in (old, newer, both)]
    assert found == [2.5, inf, 3.5]


@pytest.mark.parametrize(
    "argument", ["SOLVER.IMS_PER_BATCH 96", "['SOLVER.IMS_PER_BATCH', '96', 'TEST.IMS_PER_BATCH']"]
)
def test_mask_r_cnn_says_its_batch_among_its_arguments(argument):
    lines = [f"+ python train_mlperf.py {argument} TEST.IMS_PER_BATCH 8"]
    lines += written("maskrcnn-benchmark")
    measured = measure_one(lines)
    assert (measured.status, measured.global_batch) == ("ok", 96)


@pytest.mark.parametrize("prefix", [":::MLLOG {}", ":::MLL 1.5 run_start", ":::MLPv0.5.0 ssd 1.5"])
def test_one_line_of_mlperfs_makes_a_log(prefix):
    assert reads_like_log(f"+ srun\n{prefix}\n".encode())
    assert not reads_like_log(f"+ srun\n{prefix[4:]}\n".encode())
    assert not reads_like_log(f"\0{prefix}\n".encode())


class TestARunWhoseEndAnotherRankTells:
    """The rank that evaluates, which is not the measured one."""

    LINES = tuple(f" 0: {line}" for line in written("mlperf")[:-1])

    def test_is_measured_wherever_that_end_stands(self):
        end = f"56: {event(*STOP)}"
        for at in (5, len(self.LINES)):
            measured = measure_written("mlperf", [*self.LINES[:at], end, *self.LINES[at:]])
            assert (measured.status, measured.throughput) == ("ok", RATE)

    def test_is_refused_where_nobody_tells_it(self):
        assert measure_written("mlperf", list(self.LINES)).status == "refused"

    def test_is_refused_where_the_measured_rank_was_aborted(self):
        ends = [f" 0: {event(*STOP)}".replace("success", "aborted"), f"56: {event(*STOP)}"]
        reason = "the log says that the run stopped as aborted, without success"
        assert measure_written("mlperf", [*self.LINES, *ends]).reason == reason


def test_a_step_that_counts_tokens_is_found_by_how_long_a_batch_took():
    """A batch of 16 sequences of 2048 tokens takes 0.5 s."""
    head = [event("global_batch_size", 16), event("max_sequence_length", 2048)]
    stats = [
        event(
            "tracked_stats",
            {"train_step_timing": 0.5, "reduced_train_loss": 2.7},
            {"step": n * 16 * 2048},
            ms=500 * n,
        )
        for n in range(1, 60)
    ]
    measured = measure_one([*head, *stats, event(*STOP)], widest=True)
    assert (measured.format, measured.throughput) == ("mlperf-steps", 32.0)
    assert measured.samples == 16 * (59 - 20)
    slower = [
        line.replace('"train_step_timing": 0.5', '"train_step_timing": 0.7') for line in stats
    ]
    assert "nor" in measure_one([*head, *slower, event(*STOP)], widest=True).reason
    mean = event("tracked_stats", {"throughput": 32.0, "train_step_time": 0.5}, {"step": 0}, ms=9)
    lines = [*head, *stats[:9], mean, *stats[9:], event(*STOP)]
    assert measure_one(lines, widest=True).throughput == 32.0


@pytest.mark.parametrize("name", ["train_step_timing", "train_step_timing in s"])
def test_steps_without_losses_are_measured_behind_twenty_batches_whatever_follows(name):
    """As gpt3 in v3.1 and v4.1; from step 41 on, more passes than the log prints for its steps."""
    head = [event("global_batch_size", 16), event("max_sequence_length", 2048)]
    stats = [
        event("tracked_stats", {name: 0.5}, {"step": n * 32768}, ms=500 * n + 100 * max(0, n - 40))
        for n in range(1, 160)
    ]
    last = event("tracked_stats", {"throughput": 32.0}, {"step": 159 * 32768}, ms=99_000)
    measured = measure_one([*head, *stats, event(*STOP), last], widest=True)
    assert (measured.format, measured.widest) == ("mlperf-steps", (20 * 32768, 159 * 32768))
    assert "the printed speeds mean" in measured.reason
    ends = (20 * 32768, 40 * 32768)
    measured = measure_one([*head, *stats, event(*STOP), last], ends=ends)
    assert measured.throughput == 32.0


def test_speeds_may_count_the_evaluations_before_them():
    """As BERT since v3.1: 800 samples in 10 s, and 2 s of evaluation, are printed as 800 / 12."""
    lines = [event("global_batch_size", 8)]
    for n in range(1, 9):
        at, count = 12_000 * n, {"epoch_num": 800 * n}
        lines += [event("tracked_stats", {"throughput": 800 / 12}, count, ms=at)]
        lines += [event("eval_start", None, count, ms=at), event("eval_stop", ms=at + 2000)]
    measured = measure_one([*lines, event(*STOP)], widest=True)
    assert (measured.status, measured.throughput, measured.evaluations) == ("ok", 80.0, 7)
    other = [line.replace(str(800 / 12), "60.0") for line in lines]
    assert "the printed speeds mean" in measure_one([*other, event(*STOP)], widest=True).reason


def test_a_run_whose_only_line_follows_its_end_is_not_called_cut():
    line = event("tracked_stats", {"throughput": 9e6}, {"step": 0.8}, ms=9000)
    for how in ({}, {"widest": True}):
        measured = measure_one([event(*STOP, ms=8000), line], **how)
        assert measured.reason == (
            "its lines count parts of an epoch, and evaluations lie between them"
        )


def test_deepcams_losses_count_batches():
    head = [event("global_batch_size", 128)]
    losses = [
        event("train_loss", 2.1, {"epoch_num": 1, "step_num": n}, ms=400 * n)
        for n in range(10, 151, 10)
    ]
    measured = measure_one([*head, *losses, event(*STOP)])
    assert (measured.format, measured.throughput) == ("mlperf-losses", 320.0)


class TestEpochsThatAreOnlyStamped:
    """Epochs of 168 samples, of 7 batches of 24, take 2 s; an evaluation follows every tenth."""

    def lines(self, *, benchmark: str = "unet3d", batch: int = 24, first: int = 1) -> list[str]:
        lines = [event("submission_benchmark", benchmark), event("global_batch_size", batch)]
        lines += [event("train_samples", 168)]
        for n in range(60):
            if n % 10 == 0:
                lines += [event("eval_start", ms=2000 * n - 2), event("eval_stop", ms=2000 * n - 1)]
                lines += [event("block_start", None, {"first_epoch_num": n + first}, ms=2000 * n)]
            lines += [event("epoch_start", None, {"epoch_num": n + first}, ms=2000 * n + 1)]
        return [*lines, event("block_start", None, {"first_epoch_num": first}, ms=10**6)]

    @pytest.mark.parametrize(("first", "benchmark"), [(0, "cosmoflow"), (1, "unet3d")])
    def test_are_measured_between_two_starts(self, first, benchmark):
        lines = self.lines(first=first, benchmark=benchmark)
        measured = measure_one([*lines, event(*STOP)], widest=True)
        assert (measured.format, measured.first, measured.last) == ("mlperf-passes", 3, 59)
        assert measured.throughput == pytest.approx(84.0, rel=0.001)

    def test_are_measured_beside_batches_that_are_seldom_printed(self):
        """As in rnnt of v1.1: a batch of every other epoch or so, with its time."""
        dll = "DLL 2021-10-19 05:43:{}.26 - epoch {} | iter 48/136 | loss 2 | utts/s 1 | took 9 s |"
        lines = self.lines(benchmark="rnnt")
        lines[60:60] = [dll.format(n + 10, n) for n in (8, 15, 23)]
        measured = measure_one([*lines, event(*STOP)], widest=True)
        assert (measured.format, measured.first, measured.last) == ("mlperf-passes", 3, 59)

    def test_are_refused_where_whole_batches_would_be_another_epoch(self):
        measured = measure_one([*self.lines(batch=16), event(*STOP)], widest=True)
        assert measured.reason == (
            "the log does not say how many samples it trains in an epoch: 168 or 176"
        )

    def test_are_measured_where_a_printed_throughput_decides(self):
        """11 batches of 16 an epoch."""
        lines = self.lines(batch=16)
        for at in range(len(lines) - 1, 4, -1):
            if '"block_start"' in lines[at]:
                lines.insert(at, event("throughput", 88.0))
        measured = measure_one([*lines, event(*STOP)], widest=True)
        assert measured.throughput == pytest.approx(88.0, rel=0.001)

    @pytest.mark.parametrize(("benchmark", "first"), [("bert", 1), ("unet3d", 335)])
    def test_what_may_be_no_epoch_is_not_read(self, benchmark, first):
        lines = self.lines(benchmark=benchmark, first=first)
        assert measure_one([*lines, event(*STOP)]).reason.startswith("no known format: its")


class TestEvaluationsThatCount:
    """As tinycorp's BERT: 10 batches of 8 take 5 s, the evaluation behind them 3 s."""

    def lines(self, *, samples: int = 80, batch: int = 8) -> list[str]:
        lines = [event("global_batch_size", batch)]
        for n in range(1, 20):
            done, at = {"epoch_num": samples * n}, 8000 * n
            lines += [event("eval_start", None, {**done, "step_num": 10 * n}, ms=at)]
            lines += [event("eval_stop", None, {"epoch_count": samples * n}, ms=at + 3000)]
            lines += [event("eval_accuracy", 0.4, done, ms=at + 3000)]
        return [*lines, event(*STOP)]

    def test_are_measured_without_their_time(self):
        measured = measure_one(self.lines(), widest=True)
        assert (measured.format, measured.first, measured.last) == ("mlperf-evaluations", 20, 190)
        assert (measured.throughput, measured.evaluations) == (16.0, 17)
        assert measured.evaluated == 51.0

    @pytest.mark.parametrize("said", [{"samples": 88}, {"samples": 1}, {"batch": 16}])
    def test_what_counts_no_batches_is_not_read(self, said):
        assert measure_one(self.lines(**said)).reason.startswith("no known format")

    def test_one_that_does_not_end_is_refused(self):
        lines = [line for line in self.lines() if '"epoch_count": 800' not in line]
        lines = [line for line in lines if '"epoch_num": 800}' not in line]
        measured = measure_one(lines, ends=(80, 120))
        assert measured.reason.startswith("evaluations lie in the window: the first between ")


@pytest.mark.parametrize("program", ["mask_rcnn/mask_rcnn", "ssd/ssd"])
def test_blocks_in_which_devices_train_and_evaluate_are_refused(program):
    """As Google's: what is stamped as an evaluation is the host's part of it."""
    lines = [event("global_batch_size", 256), event("train_samples", 118287)]
    for n in range(12):
        block = {"first_epoch_num": n, "epoch_count": 1, "file": f"models/{program}_main.py"}
        lines += [event("block_start", None, block, ms=50_000 * n)]
        lines += [event("block_stop", None, block, ms=50_000 * n + 40_000)]
        lines += [event("eval_start", ms=50_000 * n + 45_000)]
        lines += [event("eval_stop", ms=50_000 * n + 49_000)]
    measured = measure_one([*lines, event(*STOP)], widest=True)
    assert (measured.format, measured.reason) == (
        "mlperf-loops",
        "its devices train and evaluate between the start and the stop of a block, and no line "
        "says for how long they train",
    )


def test_tinycorps_retinanet_is_measured_between_two_epochs():
    """12,191 batches of 96 an epoch, in 6,500 s, and an evaluation of 5,000 s."""
    lines = [event("submission_benchmark", "retinanet"), event("global_batch_size", 96)]
    lines += [event("train_samples", 12191)]
    for n in range(1, 5):
        at = 11_500_000 * n
        lines += [event("epoch_start", n, {"epoch_num": n}, ms=at)]
        lines += [event("eval_start", n, {"epoch_num": n}, ms=at + 6_500_000)]
        lines += [event("eval_stop", n, {"epoch_num": n}, ms=at + 11_500_000)]
    measured = measure_one([*lines, event(*STOP)], widest=True)
    assert (measured.format, measured.first, measured.last) == ("mlperf-passes", 1, 3)
    assert measured.throughput == pytest.approx(12191 * 96 / 6500)


class TestBlocksThatCountSamples:
    """10 batches of 8 a block, each a second long."""

    def lines(self, counted: int = 80) -> list[str]:
        lines = [event("global_batch_size", 8)]
        for n in range(20):
            start = {"samples_count": counted * n}
            lines += [event("block_start", None, start, ms=1000 * n)]
            lines += [event("block_stop", None, {"samples_count": 80 * (n + 1)}, ms=1000 * n + 999)]
        return [*lines, event(*STOP)]

    def test_are_measured_between_two_starts(self):
        measured = measure_one(self.lines(), widest=True)
        assert (measured.format, measured.throughput) == ("mlperf-blocks", 80.0)

    def test_starts_that_say_how_long_a_block_will_be_are_not_counts(self):
        assert measure_one(self.lines(counted=16), widest=True).status == "refused"


class TestTimeToTrain:
    BEGIN = event("run_start", ms=1_500_000_000_000)
    END = event(*STOP, ms=1_500_000_123_456)

    def of(self, *lines: str) -> float | None:
        return measure_written("mlperf", list(lines)).time_to_train

    def test_is_from_start_to_stop(self):
        *lines, _ = written("mlperf")
        assert self.of(self.BEGIN, *lines, self.END) == 123.456
        assert self.of(*lines[:1], self.BEGIN, *lines[1:], self.END) == 123.456
        begin = ':::MLL 1500000000.000 run_start: {"value": null}'
        end = ':::MLL 1500000007.5 run_stop: {"value": null, "metadata": {"status": "success"}}'
        assert self.of(begin, *lines, end) == 7.5
        finer = self.END.replace("123456,", "123456.250000,")  # as Intel's in v0.7
        assert self.of(self.BEGIN, *lines, finer) == 123.456

    def test_is_none_unless_both_are_said_once(self):
        *lines, _ = written("mlperf")
        later = self.BEGIN.replace("000000", "000999", 1)
        assert self.of(*lines, self.END) is None
        assert self.of(self.BEGIN, *lines) is None
        assert self.of(self.BEGIN, *lines, self.END.replace("success", "aborted")) is None
        assert later != self.BEGIN
        assert self.of(self.BEGIN, later, *lines, self.END) is None

    def test_is_not_that_of_our_own_runs(self):
        *lines, end = written("mllog")
        measured = measure_written("mllog", [event("run_start", ms=1_600_180_000_000), *lines, end])
        assert (measured.status, measured.time_to_train) == ("ok", None)

    def test_each_of_two_runs_has_its_own(self):
        *lines, _ = written("mlperf")
        *later, _ = written("mlperf", start=3600.0)
        again = [event("run_start", ms=1_500_003_600_000), *later]
        again += [event(*STOP, ms=1_500_003_601_000)]
        text = "".join(f"{line}\n" for line in [self.BEGIN, *lines, self.END, *again])
        facts = STYLES["mlperf"].facts
        found = measure(text.encode(), log_format="mlperf", facts=facts)
        assert [one.time_to_train for one in found] == [123.456, 1.0]
