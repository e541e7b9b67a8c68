"""What the logs of the field do that steady ones do not, line by line as they do it.

Each log here is written after real ones; each number is reckoned beside it from the lines.
"""

import pytest

from tests.unit.logs.asking import measure, measure_one
from tests.unit.logs.mlperf_lines import HEAD, STOP, evaluation, event, says, tracked
from tests.unit.logs.written import STYLES, dll, written

EIGHT = (("nodes", 1), ("devices_per_node", 8))


def bert_line(iteration: int, seconds: float) -> str:
    return (
        f"{dll(seconds)} Training Epoch: 0 Training Iteration: {iteration}  average_loss : 8.1421"
        "  step_loss : 8.2  learning_rate : 0.0024 "
    )


def measure_lines(lines: list[str], **how: object) -> list:
    return measure("".join(f"{line}\n" for line in lines).encode(), **how)


@pytest.mark.parametrize("fact", [("batch_size", 96), ("global_batch", 3072)])
def test_accumulation_that_no_log_says_is_asked_for(fact):
    """NVIDIA's BERT on 32 GPUs in PaddlePaddle/Perf, whose logs do not hold the command."""
    lines = [bert_line(step, 4.0 * step) for step in range(1, 130)]
    facts = (fact, ("nodes", 4), ("devices_per_node", 8))
    reason = measure_one(lines, facts=facts).reason
    assert "is not known: neither log, record nor path says it" in reason
    assert reason.endswith("; allowed: --accumulation")
    told = measure_one(lines, facts=(*facts, ("accumulation", 1)))
    assert told.throughput == pytest.approx(3072 / 4)
    wrong = measure_one(lines, facts=(("global_batch", 3072), ("accumulation", 88)))
    assert "3072 by the command line is not 88 batches" in wrong.reason


class TestOneFactReadTwice:
    COMMAND = (
        "+ python3 -m torch.distributed.launch --nnodes=1 --nproc_per_node=8 run_pretraining.py "
        "--train_batch_size=8448 --max_steps=20 --gradient_accumulation_steps=88 --do_train"
    )
    ARGUMENTS = (
        f'{dll(0)} PARAMETER Config : ["Namespace(do_train=True, gradient_accumulation_steps=88, '
        'n_gpu=1, train_batch_size=96, warmup_proportion=0.2843)"] '
    )

    def ask(self, *head: str, facts: tuple[tuple[str, int], ...] = ()):
        lines = [*head, *(bert_line(step, 54.9 * step) for step in range(1, 20))]
        return measure_one(lines, ends=(1, 19), facts=facts)

    def test_the_command_says_the_same_as_the_arguments_and_is_enough(self):
        both = self.ask("+ train_batch_size=8448", self.COMMAND, self.ARGUMENTS)
        assert both.throughput == pytest.approx(8 * 8448 / 54.9, rel=1e-4)
        assert self.ask(self.COMMAND).global_batch == 8 * 8448

    def test_where_they_contradict_each_other_an_option_decides(self):
        command = self.COMMAND.replace("--train_batch_size=8448 ", "")
        head = (command, self.ARGUMENTS, self.ARGUMENTS.replace("=96", "=48"))
        assert self.ask(*head).reason == (
            "batch size per device is 96 by the log, 48 by the log; "
            "--batch-size says which is right"
        )
        assert self.ask(*head, facts=(("batch_size", 48),)).global_batch == 8 * 48 * 88
        wrong = self.ask(*head, facts=(("batch_size", 24),))
        assert wrong.reason == "batch size per device is 96 by the log, 24 by the command line"


class TestMllogLines:
    """Among HugeCTR's: 100 iterations take 0.3675 s."""

    BATCH = event("global_batch_size", 28000)

    def lines(self, at: int = 0, *between: str) -> list[str]:
        lines = [
            f"[HCTR][16:16:19.658][INFO][RK0][main]: Iter: {i} Time(100 iters): 0.3675s "
            f"Loss: {0.2 - i / 1e6:.6f} lr:0.004"
            for i in range(100, 5001, 100)
        ]
        return [*lines[:at], *between, *lines[at:]]

    @pytest.mark.parametrize("where", [0, 3, 50])
    def test_the_batch_in_them_is_read_wherever_they_stand(self, where):
        lines = self.lines(where, self.BATCH)
        measured = measure_one(lines, ends=(100, 300))
        assert measured.throughput == pytest.approx(28000 * 200 / 0.735)
        assert measured.sources["global_batch"] == "the log"
        contradicted = measure_one(lines, facts=(("global_batch", 55296),), ends=(100, 300))
        assert contradicted.reason == "global batch is 28000 by the log, 55296 by the command line"

    def test_a_window_with_evaluations_is_refused_for_them(self):
        lines = [*self.lines(20, *evaluation(0, 9000)), self.BATCH]
        measured = measure_one(lines, ends=(100, 4000))
        assert measured.reason == (
            "evaluations lie in the window and take 9 of its 14.3325 s: the first between the "
            "iterations 2000 and 2100"
        )
        assert measured.widest == (2100, 5000)
        assert measure_one(lines, ends=(2100, 5000)).status == "ok"

    def test_an_evaluation_of_a_trifle_does_not_matter_and_is_not_left_out(self):
        """Whether the printed durations hold it or not."""
        lines = [*self.lines(20, *evaluation(0, 10)), self.BATCH]
        measured = measure_one(lines, ends=(100, 4000))
        assert (measured.status, measured.evaluations) == ("ok", 0)

    def test_an_evaluation_before_the_first_line_that_is_left_counts(self):
        """As `tail` leaves it: the first line's seconds are those of the evaluation, too."""
        left = [self.BATCH, *evaluation(0, 300), *self.lines()[20:]]
        measured = measure_one(left, ends=(2000, 2300))
        assert measured.reason.startswith("evaluations lie in the window and take 0.3 of its ")
        assert measure_one(left, ends=(2100, 2300)).status == "ok"

    def test_a_window_is_proposed_only_where_all_of_the_log_was_read(self):
        lines = [*HEAD, *(tracked(n, n * 1000, 56.0) for n in range(50, 200_000, 50)), STOP]
        lines[3000:3000] = evaluation(0, 99_000_000)
        ends = measure_one(lines).widest
        assert measure_one(lines, ends=ends).status == "ok"


class TestSkippedSteps:
    """NVIDIA's fp16 BERT: loss scaling skips a step, and the number is printed again."""

    KNOWN = (("batch_size", 8), *EIGHT, ("accumulation", 1))

    def ask(self, *again: int, first: tuple[int, ...] = (1,)):
        numbers = [*first, *sorted([*range(2, 131), *again])]
        lines = [bert_line(number, 4.0 * at) for at, number in enumerate(numbers)]
        return measure_one(lines, facts=self.KNOWN)

    @pytest.mark.parametrize("again", [(2, 5, 5), (120,), (125,), (19,)])
    def test_before_and_behind_the_window_they_do_not_matter(self, again):
        assert self.ask(*again).throughput == pytest.approx(64 / 4.0)

    @pytest.mark.parametrize("first", [(1, 1, 1, 1), (0, 1, 1, 1, 0, 0, 0, 1, 1)])
    def test_a_count_that_goes_back_by_one_is_the_same_run(self, first):
        """NVIDIA prints the count before it knows which steps were skipped."""
        assert self.ask(first=first).throughput == pytest.approx(64 / 4.0)

    @pytest.mark.parametrize("again", [(20,), (60, 60), (119,)])
    def test_in_the_window_they_are_named(self, again):
        assert self.ask(*again).reason == (
            f"iteration {again[0]} is printed {1 + len(again)} times: steps in the window were "
            "skipped, as loss scaling does, or the lines of several ranks are mixed without labels"
        )

    def test_where_every_number_is_printed_again_ranks_are_mixed(self):
        assert self.ask(*range(2, 131), first=(1, 1)).reason == (
            "iteration 20 is printed 2 times: the lines of several ranks are mixed without labels"
        )

    def test_a_count_that_begins_again_behind_new_arguments_is_another_run(self):
        run = [bert_line(number, 4.0 * number) for number in range(1, 131)]
        short = [bert_line(1, -20.0), bert_line(2, -16.0)]
        lines = [*short, TestOneFactReadTwice.ARGUMENTS, *run]
        facts = (*EIGHT, ("batch_size", 96), ("accumulation", 88))
        assert [one.status for one in measure_lines(lines, facts=facts)] == ["refused", "ok"]


@pytest.mark.parametrize("noise", [0, 1000, 100_000])
@pytest.mark.parametrize("last", [200, 40_000])
@pytest.mark.parametrize("name", ["mlperf", "mllog"])
def test_the_end_of_a_run_is_seen_before_one_more_record(name, last, noise):
    lines = written(name, last)[:-1]
    lines[-1:] = [STOP, "x" * noise, lines[-1]]
    measured = measure_one(lines, log_format=name, facts=(("nodes", 2), ("devices_per_node", 2)))
    assert (measured.status, measured.reason) == ("ok", "")


def test_a_second_run_keeps_its_arguments_behind_lines_of_other_ranks():
    lines = []
    for batch, start in ((32, 0.0), (64, 3600.0)):
        run = written("ngc-mxnet-resnet50", 140, start)[2:]
        run = [line.replace("Speed: 128.0", f"Speed: {batch / 0.25!r}") for line in run]
        lines.append(f"[1,1]<stderr>:Namespace(batch_size={batch}, gpus='1')")
        for line in run:  # the higher rank is the first to print
            lines += [f"[1,1]<stderr>:{line}", f"[1,0]<stderr>:{line}"]
    assert [one.throughput for one in measure_lines(lines)] == [128.0, 256.0]


class TestWhatMlperfCounts:
    def ask(self, rate: float, *, batch: int = 56, every: int = 20, last: int = 200):
        steps = (tracked(n, n * 1000, rate) for n in range(every, last + 1, every))
        return measure_one([*says(global_batch_size=batch, train_samples=168), *steps, STOP])

    def test_epochs_are_as_many_samples_as_an_epoch_holds(self):
        assert self.ask(168.0).samples == 100 * 168
        assert self.ask(240.0, batch=80).samples == 100 * 240  # of whole batches

    def test_speeds_that_fit_nothing_name_all_that_they_do_not_fit(self):
        assert self.ask(490.0).reason == (
            "the printed speeds mean 490 samples a step, the global batch is 56: a step of this "
            "log is neither a batch nor a sample, nor an epoch of 168 samples"
        )

    def test_a_number_that_goes_up_by_one_is_no_sample(self):
        """MiniGo counts generations and prints how many it makes a second."""
        steps = (tracked(n, n * 1000, 1.0) for n in range(1, 201))
        measured = measure_one([event("train_samples", 1_000_000), *steps, STOP])
        assert "the global batch is not known" in measured.reason

    def test_a_warm_up_in_epochs_or_samples_is_as_many_batches(self):
        epochs = [tracked(n, n * 1000, 168.0) for n in range(1, 60)]
        assert measure_one([*HEAD, *epochs, STOP]).widest == (7, 59)  # of 3 batches
        samples = [tracked(n * 560, n * 1000, 560.0, "epoch_num") for n in range(1, 60)]
        assert measure_one([*HEAD, *samples, STOP]).widest == (2 * 560, 59 * 560)

    def test_evaluations_in_every_stretch_are_the_reason_and_not_the_speed(self):
        lines = [*HEAD]
        for epoch in range(1, 9):
            lines += [tracked(epoch, epoch * 10_000, 33.6), *evaluation(0, 5000)]
        measured = measure_one([*lines, STOP])
        assert measured.reason.startswith("evaluations lie in every stretch of the log")
        assert measured.widest is None


class TestALogOfTooManyLines:
    """One that prints 600 of them, where 500 are kept."""

    LINES = written("oneflow-wide-deep", 20 * 600)

    @pytest.fixture(autouse=True)
    def few_lines(self, monkeypatch):
        monkeypatch.setattr("reperf.logs.logged_runs.MOST_RECORDS", 500)

    def test_asks_for_a_nearer_end(self):
        reason = measure_one(self.LINES, ends=(20, 20 * 590)).reason
        assert "choose a nearer one with --window FIRST:LAST" in reason
        assert measure_one(self.LINES).status == "ok"

    @pytest.mark.parametrize("block", [1 << 10, 1 << 16], ids=["skipped", "read"])
    def test_is_measured_in_the_widest_window_of_those_that_are_kept(self, block, monkeypatch):
        monkeypatch.setattr("reperf.logs.log_file.SMALLEST_CHUNK", block)
        measured = measure_one(self.LINES, widest=True)
        assert (measured.first, measured.last) == measured.widest == (20, 20 * 500)
        named = measure_one(self.LINES, ends=measured.widest)
        assert (named.status, named.throughput) == ("ok", measured.throughput)
        assert measured.last_printed == 20 * 600

    def test_hears_a_line_that_steps_back_into_the_window(self):
        other = self.LINES[-400].replace(".", ".1")
        reason = measure_one([*self.LINES[:-10], other, *self.LINES[-10:]], widest=True).reason
        assert "the lines of several ranks are mixed without labels" in reason


def test_of_several_epochs_the_first_is_named_where_no_window_fits():
    lines = [
        f"Epoch: [{epoch}][ {batch}/30]\tTime  0.360 ( 2.410)\tData  0.108 ( 0.072)\t"
        f"Loss {7 - epoch / 100 - batch / 1000} (1.9)\tAcc@1   1.56 (  2.34)"
        for epoch in range(3)
        for batch in range(9 if epoch == 0 else 30)
    ]
    assert measure_one(lines, widest=True, facts=(("global_batch", 32),)).reason == (
        "the log allows no window after a warm-up of 20 iterations: printed are 0 to 8"
    )


PADDLES_LAUNCHER = (
    "LAUNCH INFO 2023-07-28 07:49:49,627 devices: 0,1",
    "LAUNCH INFO 2023-07-28 07:49:49,628 nnodes: 2",
    "LAUNCH INFO 2023-07-28 07:49:49,628 training_script_args: ['-o', "
    "'DataLoader.Train.sampler.batch_size=8', '-o', 'Global.epochs=8']",
)
FLAGS = ("INFO:tensorflow:  train_batch_size: 2", "  num_accumulation_steps: 4")
FOUR = (("nodes", 2), ("devices_per_node", 2))


@pytest.mark.parametrize(
    ("name", "head", "facts", "batch"),
    [
        ("tensorflow2-bert", ("I0904 12:00:00.1 1 a.py:1] Global batch size: 4096",), (), 4096),
        ("tensorflow2-resnet50", ("Global batch size: 32",), (), 32),
        ("ngc-tensorflow1-resnet50", ("Num GPUs 4", "Per-GPU Batch Size 8"), (), 32),
        ("hugectr-wide-deep", ("[main]: Training batchsize: 32, evaluation batchsize: 9",), (), 32),
        ("ngc-tensorflow1-bert", FLAGS, FOUR, 32),
        ("paddle2-resnet50", PADDLES_LAUNCHER, (), 32),
    ],
)
def test_the_batch_that_the_log_prints_is_read(name, head, facts, batch):
    body = written(name)[len(STYLES[name].head) :]
    measured = measure_one([*head, *body], log_format=name, facts=facts)
    assert (measured.reason, measured.global_batch) == ("", batch)


def test_what_nobody_says_is_missed_before_a_window_is():
    lines = [bert_line(step, 54.9 * step) for step in (0, 0, 0, *range(1, 20))]
    lines.insert(0, TestOneFactReadTwice.ARGUMENTS)
    missed = measure_one(lines, widest=True).reason
    assert missed.endswith("; allowed: --topology, or --global-batch")
    assert measure_one(lines, widest=True, facts=EIGHT).first == 1


@pytest.mark.parametrize(
    "line",
    [
        "Epoch[034] Batch [0039]/[0056]\tSpeed: 110.7 samples/sec\t accuracy=88.9",
        "[Epoch 25][Batch 14599], Speed: 6.9 samples/sec, RPN_Conf=0.021",
        "[Epoch 0][Batch 99], LR: 9.6E-05, Speed: 148.6 samples/sec, ObjLoss=430",
    ],
)
def test_gluoncv_may_say_its_batch_and_prints_no_time(line):
    lines = ["Total batch size is set to 64 on 8 GPUs", line]
    measured = measure_one(lines)
    assert (measured.format, measured.global_batch, measured.world_size) == ("gluoncv", 64, 8)
    assert measured.reason == "the log prints neither time stamps nor durations"
    contradicted = measure_one(lines, facts=(("global_batch", 256),))
    assert contradicted.reason == "global batch is 64 by the log, 256 by the command line"


def test_rnnt_prints_one_batch_over_the_time_of_ten():
    """So does every submission of MLPerf v2.0 that prints each tenth batch."""
    lines = [
        f"{dll(0.6 * i)} epoch    1 | iter {i:4d}/272 | loss  {119 - i / 100:.2f} | "
        f"utts/s {2048 / 6:5.0f} | took  6.00 s | lrate 4.00e-03"
        for i in range(10, 131, 10)
    ]
    facts = (("global_batch", 2048), ("accumulation", 1))
    assert measure_one(lines, facts=facts).throughput == pytest.approx(2048 / 0.6)


class TestSunkSteps:
    """MindSpore counts in one line and tells the time in the next: epoch n takes 2 + 0.1 n s."""

    def lines(self) -> list[str]:
        epochs = (
            (
                f"epoch: {n} step: 10, loss is 6.9{n:02d}",
                f"epoch time: {2000 + 100 * n}.000 ms, per step time: {200 + 10 * n}.000 ms",
            )
            for n in range(1, 14)
        )
        return [line for epoch in epochs for line in epoch]

    def measured(self, lines: list[str], *ends: int):
        return measure_one(lines, ends=ends, facts=(("global_batch", 32),))

    def test_a_time_that_follows_another_has_no_count(self):
        lines = self.lines()
        assert lines.pop(8).startswith("epoch: 5 step: 10")
        assert self.measured(lines, 40, 60).reason.startswith("the time from iteration 40 to 50")
        assert "iteration 40 is printed 2 times" in self.measured(lines, 20, 40).reason

    def test_the_time_in_front_of_a_hole_may_be_that_of_a_later_count(self):
        lines = self.lines()
        del lines[9:15]  # from the time of 50 to the count of 80: what is left reads like 50's own
        assert lines[9] == "epoch time: 2800.000 ms, per step time: 280.000 ms"
        assert self.measured(lines, 20, 50).reason.startswith("the time from iteration 40 to 50")
        assert self.measured(lines, 20, 40).seconds == pytest.approx(2.3 + 2.4)


def test_the_mean_of_mxnet_ssd_begins_again_with_each_epoch():
    lines = [
        f"[Training][Iteration {i}][Epoch {1 + i // 131}, Batch {i % 131}/131] lr: 0.06881, "
        f"training time: 110.000 [ms], speed: {896 / 0.11:.3f} [imgs/sec], loss=6.{i}"
        for i in range(100, 801, 100)
        for _ in range(2)
    ]
    facts = (("global_batch", 896),)
    widest = measure_one(lines, widest=True, facts=facts)
    assert (widest.first, widest.last) == (393, 500)  # seven batches of epoch 4, and 100 more
    assert widest.throughput == pytest.approx(896 / 0.11)
    refused = measure_one(lines, ends=(200, 300), facts=facts)
    assert refused.reason.startswith("the time from iteration 200 to 262 is not in the log")
