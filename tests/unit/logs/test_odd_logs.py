"""What the logs of strangers did that no test had: found by measuring thousands of them."""

import pytest

from tests.unit.logs.asking import measure_one
from tests.unit.logs.mlperf_lines import HEAD, STOP, evaluation, event, says, tracked
from tests.unit.logs.written import STYLES, written


def test_of_epochs_that_count_alike_the_first_is_what_a_log_prints():
    lines = [
        f"[2022/06/02 16:{at // 60:02d}:{at % 60:02d}] ppcls INFO: epoch:{at // 600}   "
        f"train step:{at % 600}   loss: 6.9 lr: 0.1 batch_cost: 1.0 s, reader_cost: 0.01 s, "
        "ips: 32.0 samples/sec."
        for at in range(10, 900, 10)
    ]
    measured = measure_one(lines)
    assert (measured.first_printed, measured.last_printed) == (10, 590)


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
    refused = measure_one(lines)
    assert refused.widest == (60, 300)
    assert "16 by the line of iteration 30, 32 by the line of iteration 70" in refused.reason
    taken = measure_one(lines, widest=True)
    assert (taken.first, taken.last, taken.throughput) == (60, 300, 32 / 0.25)


class TestWorkThatIsOnlyQueued:
    """MXNet on hundreds of nodes: an epoch's line comes as soon as all its batches are queued."""

    def lines(self, queued: int, evaluations: int = 1) -> list[str]:
        lines, clock = [*HEAD], 0
        for block in range(10):
            for epoch in range(4):
                clock += queued
                lines.append(tracked(4 * block + epoch + 1, clock, 168_000 / queued))
            clock += 4 * (1000 - queued)  # until the devices have done it
            lines += evaluation(clock, clock + 100 * evaluations)
            clock += 100 * evaluations
        return [*lines, STOP]

    def test_no_window_of_it_is_taken(self):
        measured = measure_one(self.lines(250), ends=(9, 12))
        assert measured.widest is None
        assert measured.reason == (
            "the window is 3.71 times as fast as the run from its start on, evaluations left out: "
            "its lines seem to be printed before their work is done"
        )

    @pytest.mark.parametrize("evaluations", [1, 100])
    def test_work_that_is_done_when_it_is_printed_is(self, evaluations):
        lines = self.lines(1000, evaluations)
        assert measure_one(lines, ends=(9, 12)).throughput == pytest.approx(168)
        assert measure_one(lines).widest == (9, 12)


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
    how = {"log_format": name, "facts": STYLES[name].facts}
    lines = written(name)
    whole = measure_one(lines, **how)
    assert whole.status == "ok"
    lines.insert(len(lines) // 2, said)
    measured = measure_one(lines, **how)
    first, last = measured.widest
    assert measured.reason.startswith("evaluations lie in the window: the first between ")
    assert measure_one(lines, ends=(first, last), **how).status == "ok"
    assert whole.widest[1] - whole.widest[0] > last - first


def bar(count: int, total: int = 1000, name: str = "") -> str:
    minutes, seconds = divmod(4 * count, 60)
    shown = f"{count}/{total} [{minutes:02d}:{seconds:02d}<00:36"
    return f"\r{name}{100 * count // total:3d}%|#  | {shown}"


class TestTrainerThatAnnouncesNothing:
    """Hugging Face's Trainer below the log level of its announcement, as it is by default."""

    FACTS = (("global_batch", 32), ("accumulation", 1))
    OTHER = ", 2it/s]\n"

    def ask(self, between: str = "", *, before: str = "", facts=FACTS):
        text = before + bar(7, 8, "Map: ") + ", 2 examples/s]\n"
        for count in range(1, 301):
            text += bar(count) + ",  4.00s/it]"
            if count % 50 == 0:
                text += f"\n{{'loss': {9 - count / 1e3}, 'learning_rate': 1e-05, 'epoch': 0.1}}\n"
            text += between if count == 200 else ""
        return measure_one(f"{text}\n".encode(), facts=facts, widest=not between)

    def test_the_bar_of_the_first_dictionary_is_its(self):
        measured = self.ask()
        assert (measured.first, measured.last, measured.throughput) == (51, 300, 8.0)

    @pytest.mark.parametrize(
        ("between", "widest"),
        [
            (bar(1, 50) + OTHER, (51, 200)),
            ("\n{'eval_loss': 1.2, 'eval_runtime': 9, 'epoch': 0.2}\n", (51, 200)),
            (bar(1, 50, "Writing: ") + OTHER, (51, 300)),  # a bar with a name is another
        ],
    )
    def test_nothing_behind_an_evaluation_is_taken(self, between, widest):
        assert self.ask(between).widest == widest

    def test_an_evaluation_before_training_is_none_of_its(self):
        early = bar(1, 50) + self.OTHER + "{'eval_loss': 1.2, 'eval_runtime': 9, 'epoch': 0}\n"
        assert self.ask(before=early).widest == (51, 300)

    def test_what_lacks_is_named_with_all_that_goes_with_it(self):
        assert self.ask(facts=()).reason.endswith(
            "; allowed: --batch-size and --topology and --accumulation, "
            "or --global-batch and --accumulation"
        )


@pytest.mark.parametrize("label", ["0: ", "[1,0]<stdout>:", "[rank0]: ", "(Worker pid=7) "])
def test_keras_counts_its_epochs_behind_labels(label):
    lines = []
    for epoch in range(1, 31):
        took = epoch // 20 * 10 + 90
        lines.append(f"{label}Epoch {epoch}/30")
        lines.append(f"{label}32/32 [======] - {took}s 3s/step - loss: 0.2911")
    measured = measure_one(lines, ends=(20, 30), facts=(("epoch_samples", 1000),))
    assert (measured.format, measured.throughput) == ("keras", 10.0)


def test_detectron2s_file_reads_as_its_screen_does():
    screen = written("detectron2")
    file = [line.replace(" d2.utils.events]:", "] d2.utils.events INFO:") for line in screen]
    assert measure_one(file).throughput == measure_one(screen).throughput == 8.0


def test_a_batch_that_detectron2_scales_is_not_read():
    lines = written("detectron2")
    lines.insert(2, "Auto-scaling the config to batch_size=64, learning_rate=0.08")
    assert measure_one(lines).reason.endswith("; allowed: --batch-size, or --global-batch")


def test_losses_of_mlperf_are_measured_between_its_evaluations():
    """The throughputs that it prints beside them are each behind an evaluation."""
    lines = says(global_batch_size=8)
    for step in range(10, 401, 10):
        lines.append(event("train_loss", 1.3, 1500 * step, samples_count=8 * step))
        if step % 190 == 0:
            lines += [*evaluation(0, 9000), tracked(step, 1500 * step + 9001, 5.3)]
    measured = measure_one([*lines, STOP])
    assert (measured.format, measured.widest) == ("mlperf-losses", (200, 380))
    assert measured.throughput == pytest.approx(8 / 1.5)
    wrong = measure_one([*lines, STOP], facts=(("global_batch", 16),))
    assert wrong.reason == "global batch is 8 by the log, 16 by the command line"
