"""What the formats beside MLPerf's leave out, and why."""

import pytest

from tests.unit.logs.asking import measure_one, measure_written
from tests.unit.logs.written import written

BATCH = (("global_batch", 64),)
LAUNCHER = "python -m torch.distributed.launch"


class TestTfCnnBenchmarks:
    def lines(self, mode: str = "training") -> list[str]:
        stamps = (
            f"{i}\timages/sec: 100.0 +/- 0.0 (jitter = 0.0)\t8.1\t0.001\t0.002 {1593282235 + 3 * i}"
            for i in range(10, 201, 10)
        )
        return [f"Mode:        {mode}", "Batch size:  64 global", *stamps]

    def test_the_stamp_at_the_end_of_a_line_tells_the_time_unless_it_is_cut_off(self):
        assert measure_one(self.lines()).throughput == pytest.approx(64 / 3)
        cut_off = [line[:-1] for line in self.lines()]
        assert measure_one(cut_off).reason == "the log prints neither time stamps nor durations"

    def test_a_run_without_a_backward_pass_is_no_training(self):
        measured = measure_one(self.lines("forward only"))
        assert measured.reason == "the log says that its run trains nothing: it runs forward only"


class TestModdedNanogpt:
    def lines(self) -> list[str]:
        lines, clock = ["step:0/200 val_loss:10.8258 train_time:0ms step_avg:nanms"], 0
        for step in range(1, 201):
            clock = 0 if step == 10 else clock + 100
            lines.append(f"step:{step}/200 train_time:{clock}ms step_avg:99.9ms")
            if step % 50 == 0:
                validated = f"step:{step}/200 val_loss:4.4 train_time:{clock + 7}ms step_avg:9.9ms"
                lines.append(validated)
        return lines

    def test_validations_take_no_time_and_print_no_second_step(self):
        measured = measure_one(self.lines(), facts=BATCH)
        assert (measured.seconds, measured.throughput) == (10, 640)

    def test_the_clock_that_is_set_back_is_not_crossed(self):
        measured = measure_one(self.lines(), facts=BATCH, ends=(5, 105))
        assert measured.reason.startswith("time steps back by 0.9 s")

    @pytest.mark.parametrize("also", ["", "val_avg_loss:4.8 val_ema_loss:4.9 "])
    def test_validations_alone_are_lines_too(self, also):
        lines = [f"step:{i}/3210 val_loss:4.8 {also}train_time:{i / 10:.3f}s step_avg:100.0ms"
                 for i in range(0, 1001, 125)]  # fmt: skip
        assert measure_one(lines, facts=BATCH, ends=(125, 1000)).throughput == pytest.approx(640)

    def test_its_own_text_says_no_batch(self):
        source = "    batch_size : int = 8 # batch size, in sequences, across all devices"
        measured = measure_one([source, *self.lines()])
        assert measured.reason.startswith("the global batch is not known")


class TestTransformerXl:
    def lines(self, tokens: int = 6144) -> list[str]:
        head = "Namespace(batch_size=32, dataset='wt103', eval_tgt_len=64, tgt_len=192)"
        return [head, *(
            f"| epoch   1 step {i:8} | batches {i:6} / 11201 | lr 0.000e+00 | ms/batch 500.0 | "
            f"tok/s {tokens / 0.5:7.0f} | loss 12.55 | ppl 85223.53"
            for i in range(10, 201, 10)
        )]  # fmt: skip

    def test_a_line_tells_the_mean_time_since_the_one_before(self):
        measured = measure_one(self.lines())
        assert (measured.seconds, measured.throughput) == (50, 64)
        lost = self.lines()[:8] + self.lines()[9:]
        assert "is not in the log" in measure_one(lost).reason

    def test_its_tokens_must_be_those_of_its_batch(self):
        measured = measure_one(self.lines(tokens=2 * 6144))
        assert measured.reason.startswith("the printed speeds mean 64 samples a step")


class TestSquad:
    def lines(self, steps: int = 174, launcher: str = LAUNCHER, accumulation: int = 1) -> list[str]:
        head = f"{launcher} --nproc_per_node=4 run_squad.py --train_batch_size=32  --fp16"
        config = f"Namespace(gradient_accumulation_steps={accumulation}, train_batch_size=32)"
        return [head, f'DLL 2021-12-02 07:13:09.451544 - PARAMETER Config : ["{config}"] ', *(
            f"Iteration:  29%|##8       | {step - 1}/{steps} [00:22<00:42,  2.94it/s]"
            f"DLL 2021-12-02 07:{13 + step // 100:02}:{step % 100 * 0.6:09.6f} - Training Epoch: 0 "
            f"Training Iteration: {step}  step_loss : 5.89  learning_rate : 0.0 "
            for step in range(1, steps + 1, 50)
        )]  # fmt: skip

    @pytest.mark.parametrize("launcher", [LAUNCHER, "torchrun"])
    def test_every_fiftieth_step_tells_the_time(self, launcher):
        measured = measure_one(self.lines(launcher=launcher), ends=(51, 151))
        assert (measured.seconds, measured.throughput) == (60, 128 / 0.6)

    def test_the_last_step_of_an_epoch_may_be_a_smaller_batch(self):
        measured = measure_one(self.lines(steps=151), ends=(51, 151))
        assert measured.reason.startswith("too short: it ends at iteration 101")

    def test_a_batch_is_divided_by_the_accumulation_only_later(self):
        assert measure_one(self.lines(accumulation=4), ends=(51, 151)).global_batch == 128

    def test_how_many_nodes_there_are_is_said_by_the_command(self):
        two = [line.replace(" --nproc", " --nnodes=2 --nproc") for line in self.lines()]
        assert measure_one(two, ends=(51, 151)).global_batch == 256
        none = self.lines()[1:]
        assert measure_one(none, ends=(51, 151)).reason.startswith("the global batch is not known")


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


def test_an_mlperf_log_that_is_cut_is_refused():
    measured = measure_written("mlperf", written("mlperf")[:-1])
    assert measured.reason.startswith("the end of the run is not in the log")


def test_mlperf_losses_in_front_of_a_batch_count_nothing():
    lines = written("mlperf-losses")
    measured = measure_written("mlperf-losses", [lines[5], *lines])
    assert (measured.status, measured.first_printed) == ("ok", 10)


def test_what_lightning_draws_behind_a_validation_of_an_epoch_is_no_training_of_it():
    lines = written("lightning")
    bar = "Validation DataLoader 0:  50%|#         | 1/2 [00:00<00:00, 4.00it/s]"
    measured = measure_written("lightning", [*lines[:60], bar, *lines[60:]])
    assert measured.reason == "too short: it ends at iteration 59, the window at 120"
