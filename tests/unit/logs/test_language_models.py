"""Logs of trainers of language models: lines as public logs have them, and their numbers."""

import pytest

from tests.unit.logs.asking import measure_one, measure_written
from tests.unit.logs.written import STYLES, written

ONE_BATCH = ("accumulation", 1)
SINGLE = "its times are those of single iterations, and not every iteration is printed"


class TestNanogpt:
    # Issue 110, and the head of a run with `--block_size=64 --batch_size=12`.
    TIMES = (561.94, 563.15, 562.11, 562.80, 561.50, 562.73, 562.19, 562.74, 562.66, 562.18, 567.31)
    LINES = tuple(f"iter {1631 + n}: loss 4.0863, time {ms}ms" for n, ms in enumerate(TIMES))
    HEAD = (
        "block_size = 256 # context of up to 256 previous characters",
        "# block_size = 512",
        "Overriding: block_size = 64",
        "tokens per iteration will be: 768",
    )

    def test_each_iteration_tells_its_own_time(self):
        measured = measure_one([*self.HEAD, *self.LINES], ends=(1631, 1641))
        assert (measured.format, measured.reason, measured.global_batch) == ("nanogpt", "", 12)
        assert measured.seconds == pytest.approx(sum(self.TIMES[1:]) / 1000)

    def test_the_tokens_are_those_of_the_last_length(self):
        tokens = measure_one([*self.HEAD, *self.LINES], ends=(1631, 1641), unit="tokens")
        assert (tokens.reason, tokens.samples) == ("", 7680)

    def test_without_a_length_the_batch_is_asked_for(self):
        missing = measure_one([self.HEAD[-1], *self.LINES], ends=(1631, 1641))
        assert missing.reason.startswith("the global batch is not known")
        told = (("global_batch", 480), ("accumulation", 5))
        measured = measure_one(self.LINES, ends=(1631, 1641), facts=told)
        assert measured.throughput == pytest.approx(4800 / (sum(self.TIMES[1:]) / 1000))

    def test_every_tenth_line_tells_nothing_of_those_between(self):
        lines = [  # issue 215
            f"iter {2920 + 10 * n}: loss 3.9883, time {ms}ms, mfu 15.34%"
            for n, ms in enumerate((1099.34, 1097.30, 1097.68, 1096.94, 1097.23, 1097.65))
        ]
        told = (("global_batch", 480), ("accumulation", 40))
        assert measure_one(lines, ends=(2920, 2970), facts=told).reason == SINGLE

    def test_an_evaluation_is_in_the_time_behind_it(self):
        lines = [*written("nanogpt")]
        lines.insert(60, "step 55: train loss 4.0390, val loss 4.0427")
        reason = measure_written("nanogpt", lines).reason
        assert reason.startswith("evaluations lie in the window")


class TestLlmC:
    # A fork's README; the line of its batch has the numbers of this run in the program's words.
    TIMES = (2575.63, 2536.03, 2655.50, 2494.63, 2549.32, 2522.63, 2536.06, 2524.39, 2576.35)
    RATES = (203557, 206736, 201966, 204841, 205061, 205674, 205874, 206175, 205777)
    HEAD = (
        "batch_size B=64 * seq_len T=1024 * num_processes=1 and total_batch_size=524288",
        "=> setting grad_accum_steps=8",
        "val loss 11.033154",
    )

    def lines(self) -> list[str]:
        return [*self.HEAD, *(
            f"step {n:4d}/10 | loss 11.032358 (+nanz)| norm 22.1414 (+nanz)| lr 8.57e-07 | "
            f"{ms:.2f} ms | 40.3% bf16 MFU | {rate} tok/s"
            for n, (ms, rate) in enumerate(zip(self.TIMES, self.RATES, strict=True), start=1)
        )]  # fmt: skip

    def test_each_step_tells_its_time(self):
        measured = measure_one(self.lines(), ends=(1, 9))
        assert (measured.format, measured.reason) == ("llm-c", "")
        assert (measured.global_batch, measured.world_size) == (512, 1)
        assert measured.seconds == pytest.approx(sum(self.TIMES[1:]) / 1000)
        tokens = measure_one(self.lines(), ends=(1, 9), unit="tokens")
        assert tokens.throughput == pytest.approx(205_700, rel=0.01)

    def test_its_tokens_must_be_those_of_its_batch(self):
        lines = [line.replace("524288", "1048576").replace("=8", "=16") for line in self.lines()]
        assert measure_one(lines, ends=(1, 9)).reason.startswith("the printed speeds mean 512 ")


class TestNanochat:
    # Discussion 1.
    TIMES = (472.29, 487.47, 487.57, 482.58, 487.21, 484.10, 488.17, 484.78, 487.03, 487.10)
    HEAD = (
        "Tokens / micro-batch / rank: 32 x 2048 = 65,536",
        "Tokens / micro-batch: 524,288",
        "Total batch size 524,288 => gradient accumulation steps: 1",
        "Step 00000 | Validation bpb: 3.3013",
        "^[step 00000/21400 (0.00%) | loss: 11.090355 | lrm: 1.00 | dt: 23156.74ms | "
        "tok/sec: 22,640 | mfu: 1.00 | total time: 0.00m",
        "step 00001/21400 (0.00%) | loss: 10.808654 | lrm: 1.00 | dt: 649.22ms | "
        "tok/sec: 807,569 | mfu: 35.64 | total time: 0.00m",
    )

    @pytest.mark.parametrize("mfu", ["mfu", "bf16_mfu"])
    @pytest.mark.parametrize("total", ["/21400", ""])
    def test_each_step_tells_its_time(self, mfu, total):
        lines = [*self.HEAD, *(
            f"step {n:05d}{total} (0.01%) | loss: 10.179083 | lrm: 1.00 | dt: {ms:.2f}ms | "
            f"tok/sec: {int(524288 / ms * 1000):,} | {mfu}: 48.99 | total time: 0.00m"
            for n, ms in enumerate(self.TIMES, start=2)
        )]  # fmt: skip
        measured = measure_one(lines, ends=(1, 11))
        assert (measured.format, measured.reason) == ("nanochat", "")
        assert (measured.global_batch, measured.world_size) == (256, 8)
        assert measured.seconds == pytest.approx(sum(self.TIMES) / 1000)
        tokens = measure_one(lines, ends=(1, 11), unit="tokens")
        assert tokens.throughput == pytest.approx(524288 * 10 / measured.seconds)


class TestLitgpt:
    # Its tutorial 0_to_litgpt, and issue 1607.
    TIMES = (820.31, 548.72, 300.07, 595.27, 260.75, 568.22, 511.70, 514.14, 423.59, 603.03)

    def test_each_batch_tells_its_time_in_finetuning(self):
        lines = [
            "{'devices': 1,",
            " 'train': TrainArgs(save_interval=800,",
            "                    global_batch_size=8,",
            "                    micro_batch_size=4,",
            *(
                f"Epoch 1 | iter {n} step {n // 2} | loss train: 1.646, val: n/a | "
                f"iter time: {ms} ms{' (step)' if n % 2 == 0 else ''}"
                for n, ms in enumerate(self.TIMES, start=1)
            ),
        ]
        measured = measure_one(lines, ends=(1, 10))
        assert (measured.format, measured.reason, measured.global_batch) == ("litgpt", "", 4)
        assert measured.seconds == pytest.approx(sum(self.TIMES[1:]) / 1000)
        several = ["'num_nodes': 2}", *lines]
        assert measure_one(several, ends=(1, 10)).global_batch == 8

    def test_pretraining_tells_no_time_of_its_loading(self):
        lines = [
            f"Epoch 34 | iter {3050700 + 50 * n} step {610140 + 10 * n} | loss train: 2.846, "
            f"val: 2.861 | iter time: 112.20 ms (step) remaining time: 0:01:{54 - 5 * n}"
            for n in range(5)
        ]
        measured = measure_one(lines, ends=(3050700, 3050900), facts=(("global_batch", 4),))
        assert (measured.format, measured.status) == ("litgpt", "refused")
        assert measured.reason.startswith("its times leave out the loading of data")


class TestOlmo:
    TOLD = (("global_batch", 512), ONE_BATCH)

    def test_the_stamp_is_the_steps_and_the_tokens_follow(self):
        stamps = ("09:59:26.181", "10:00:05.520", "10:00:44.815")
        lines = [  # issue 692
            line
            for n, stamp in enumerate(stamps, start=1)
            for line in (
                f"2024-08-06 {stamp} host:0\tolmo.train:908\tINFO\t[step={n}/739328,epoch=0]",
                "    train/CrossEntropyLoss=12.18",
                f"    throughput/total_tokens={1048576 * n:,}",
                "    throughput/device/tokens_per_second=26,668",
            )
        ]
        measured = measure_one(lines, ends=(1, 3), facts=self.TOLD)
        assert (measured.format, measured.reason) == ("olmo", "")
        assert measured.throughput == pytest.approx(2 * 512 / 78.634)
        tokens = measure_one(lines, ends=(1, 3), facts=self.TOLD, unit="tokens")
        assert tokens.samples == 2 * 1048576
        assert measure_one(lines, ends=(1, 3)).reason.startswith("the global batch is not known")
        without = [line for line in lines if "1,048,576" not in line]
        assert "do not follow its line" in measure_one(without, widest=True, facts=self.TOLD).reason

    def test_rich_stamps_are_read_too(self):
        minutes = ("24:11", "24:46", "25:22", "25:57", "26:33", "27:09", "27:45", "28:20", "28:56")
        lines = [  # on two nodes
            line
            for n, stamp in enumerate((*minutes, "29:32"), start=1)
            for line in (
                f"[2024-04-18 14:{stamp}] INFO     [olmo.train:729, rank=0] [step={n}/739328]",
                f"    throughput/total_tokens={4194304 * n:,}",
            )
        ]
        measured = measure_one(lines, ends=(1, 10), facts=(("global_batch", 2048), ONE_BATCH))
        assert (measured.reason, measured.seconds) == ("", 321)


class TestNanotron:
    START = (
        "08/31/2024 14:37:26 [INFO|DP=0|PP=0|TP=0]: [Start training] datetime: 2024-08-31 "
        "14:37:26.889276 | mbs: 2 | grad_accum: 1 | global_batch_size: 2 | sequence_length: 256 | "
        "train_steps: 15 | start_iteration_step: 0 | consumed_train_samples: 0"
    )

    @pytest.mark.parametrize(
        ("stamps", "said"),
        [
            (
                ("10/17/2025 16:31:56", "10/17/2025 16:33:51"),  # issue 390
                "[INFO|DP=0|PP=0|TP=0]: iteration: {} / 378950 | consumed_tokens: 85.8G | "
                "elapsed_time_per_iteration_ms: 11.5K | tokens_per_sec: 22.8K | "
                "tokens_per_sec_per_gpu: 11.4K | global_batch_size: 64 | lm_loss: 2.38 | lr: 1e-05",
            ),
            (
                ("12/21 01:39:51", "12/21 01:41:46"),
                "[INFO|DP=0|TP=0|lrdn0007]: iteration: {} / 1500000 | consumed_tokens: 480B | "
                "time_per_iteration_ms: 8.79K | tokens_per_sec: 182K | "
                "tokens_per_sec_per_gpu: 699 | global_batch_size: 1.6M | "
                "grad_norm: 0.112 | lm_loss: 2.04 | lr: 0.0001",
            ),
        ],
    )
    def test_its_stamps_are_the_time_and_its_start_says_the_batch(self, stamps, said):
        lines = [self.START, *(
            f"{stamp} {said.format(n)}" for n, stamp in zip((281, 291), stamps, strict=True)
        )]  # fmt: skip
        measured = measure_one(lines, ends=(281, 291))
        assert (measured.format, measured.reason, measured.global_batch) == ("nanotron", "", 2)
        assert (measured.seconds, measured.throughput) == (115, 20 / 115)
        assert measure_one(lines, ends=(281, 291), unit="tokens").samples == 20 * 256


class TestLevanter:
    def test_a_progress_line_tells_the_time_of_its_count(self):
        rest = "rate:34.5s/it remaining:04:01"
        lines = [  # the third as in a logbook of Marin, the others after it
            "Progress on:train -/18 rate:- remaining:? elapsed:00:00 postfix:-",
            f"Progress on:train 5.00it/18.0it {rest} elapsed:14:19 postfix:loss=15.6",
            f"Progress on:train 11.0it/18.0it {rest} elapsed:17:46 postfix:loss=15.5",
            f"Progress on:train 1.20kit/1.8kit {rest} elapsed:21:00 postfix:loss=15.1",
        ]
        told = (("global_batch", 320), ONE_BATCH)
        measured = measure_one(lines, ends=(5, 11), facts=told)
        assert (measured.format, measured.reason, measured.seconds) == ("levanter", "", 207)
        assert measured.last_printed == 11

    def test_an_evaluation_takes_time_too(self):
        lines = written("levanter")
        lines.insert(60, "Progress on:eval 10.0it/184it rate:1.0it/s elapsed:00:10 postfix:-")
        facts = STYLES["levanter"].facts
        assert "evaluations lie in the window" in measure_one(lines, facts=facts).reason


class TestComposer:
    SPEED = "\t Train throughput/samples_per_sec: 2.7330"  # of 16 MI250, in AMD's blog on MPT-30B

    def block(self, batch: int, hours: float, *, unit: float = 1.0) -> list[str]:
        return [
            f"[batch={batch}/5000]:",
            f"         Train time/batch: {batch - 1}",
            f"         Train time/sample: {1024 * (batch - 1)}",
            "         Train loss/train/total: 8.4213",
            self.SPEED,
            "\t Train throughput/device/samples_per_sec: 0.1708",
            f"\t Train time/train: {hours * unit:.4f}",
            "\t Train time/val: 0.0000",
        ]

    def lines(self, unit: float = 1.0) -> list[str]:
        end = 0.5249 + 100 * 1024 / 2.7330 / 3600
        head = "global_train_batch_size: 1024"
        return [head, *self.block(5, 0.5249, unit=unit), *self.block(105, end, unit=unit)]

    def test_its_hours_are_times_where_a_speed_agrees(self):
        measured = measure_one(self.lines(), ends=(5, 105))
        assert (measured.format, measured.reason, measured.global_batch) == ("composer", "", 1024)
        assert measured.throughput == pytest.approx(2.7330, rel=1e-4)

    def test_other_units_are_refused(self):
        refused = measure_one(self.lines(unit=60), ends=(5, 105))
        assert refused.reason.startswith("the printed speeds mean ")
        silent = [line for line in self.lines() if line != self.SPEED]
        assert measure_one(silent, ends=(5, 105)).reason.startswith("it prints no speed")

    def test_lines_of_two_batches_make_no_record(self):
        lines = self.lines()
        del lines[7:11]  # from the time of batch 5 to the first line of batch 105
        measured = measure_one(lines, ends=(5, 105))
        assert (measured.format, measured.status) == (None, "refused")
