"""What the lines of a log say of its devices, its batch, its precision and its workload."""

import pytest

from tests.unit.logs.asking import measure_one, measure_written
from tests.unit.logs.mlperf_lines import says
from tests.unit.logs.written import STYLES, written

PRINTED = "[2024-03-08 16:33:18,189] [INFO] [config.py:1000:print]   "
DEEPSPEED = [
    f"{PRINTED}{line}"
    for line in (
        "bfloat16_enabled ............. False",
        "fp16_enabled ................. True",
        "gradient_accumulation_steps .. 2",
        "train_batch_size ............. 32",
        "train_micro_batch_size_per_gpu  4",
        "world_size ................... 4",
    )
]
LAUNCHED = "[2024-03-08 16:33:10,001] [INFO] [launch.py:163:main] dist_world_size=8"


def told(name: str, head: list[str], *facts: tuple[str, object]):
    """What a log gives whose head is another, where the command line says more."""
    lines = written(name)[len(STYLES[name].head) :]
    return measure_one([*head, *lines], facts=facts)


class TestDeepspeed:
    def test_its_configuration_says_devices_and_batch(self):
        measured = told("deepspeed", DEEPSPEED)
        assert (measured.status, measured.world_size, measured.global_batch) == ("ok", 4, 32)

    @pytest.mark.parametrize(
        ("fact", "reason"),
        [
            (("world_size", 8), "world size is 4 by the log, 8 by the command line"),
            (("batch_size", 8), "batch size per device is 4 by the log, 8 by the command line"),
            (("precision", "fp32"), "precision is fp16 by the log, fp32 by the command line"),
            (("precision", "amp"), ""),
        ],
    )
    def test_who_says_otherwise_is_named_with_it(self, fact, reason):
        assert told("deepspeed", DEEPSPEED, fact).reason == reason

    def test_bfloat16_is_amp_in_bf16(self):
        head = [line.replace("fp16", "bfloat16") for line in DEEPSPEED[1:]]
        assert told("deepspeed", head, ("precision", "bf16")).reason == ""
        assert told("deepspeed", head, ("precision", "fp32")).status == "refused"

    def test_a_model_may_lie_on_several_devices(self):
        """The configuration's world size counts replicas then, the launcher's devices."""
        assert told("deepspeed", [LAUNCHED, *DEEPSPEED]).world_size == 8
        shared = f"{PRINTED}tensor_parallel_config ....... autotp_size=2"
        assert told("deepspeed", [shared, *DEEPSPEED], ("world_size", 8)).world_size == 8


class TestHuggingFace:
    HEAD = STYLES["huggingface"].head

    @pytest.mark.parametrize(
        ("fact", "reason"),
        [
            (("world_size", 8), "world size is 4 by the log, 8 by the command line"),
            (("batch_size", 4), "batch size per device is 8 by the log, 4 by the command line"),
            (("world_size", 4), ""),
        ],
    )
    def test_the_processes_are_those_of_the_batch(self, fact, reason):
        assert told("huggingface", self.HEAD, fact).reason == reason

    def test_one_process_may_have_several_devices(self):
        head = [line.replace("per device = 8", "per device = 32") for line in self.HEAD]
        assert told("huggingface", head, ("world_size", 4), ("batch_size", 8)).status == "ok"

    def test_thousands_are_parted_by_commas(self):
        head = [line.replace("= 32", "= 3,200").replace("= 8", "= 800") for line in self.HEAD]
        measured = told("huggingface", head)
        assert (measured.global_batch, measured.world_size) == (3200, 4)

    def test_the_arguments_say_the_precision(self):
        head = ["bf16=False,", "fp16=True,", *self.HEAD]
        assert told("huggingface", head, ("precision", "fp16")).reason == ""
        reason = "precision is fp16 by the log, bf16 by the command line"
        assert told("huggingface", head, ("precision", "bf16")).reason == reason


class TestMlperf:
    @pytest.mark.parametrize(
        ("benchmark", "workload", "reason"),
        [
            ("resnet", "resnet50", ""),
            ("bert", "bert-large", ""),
            ("bert", "bert-base", "bert-large by the log, bert-base by the command line"),
            ("unet3d", "resnet50", "unet3d by the log, resnet50 by the command line"),
            ("transformer", "transformer", "transformer-big by the log, transformer by the"),
        ],
    )
    @pytest.mark.parametrize("name", ["mlperf", "mlperf-losses", "ngc-mxnet-ssd"])
    def test_a_benchmark_is_the_workload_in_logs_of_any_format(
        self, name, benchmark, workload, reason
    ):
        lines = [*says(submission_benchmark=benchmark), *written(name)]
        facts = (*STYLES[name].facts, ("workload", workload))
        measured = measure_written(name, lines, facts=facts)
        assert bool(measured.reason) == bool(reason)
        assert reason in measured.reason

    def test_so_it_is_in_version_0_6(self):
        line = ':::MLL 1560822378.645 submission_benchmark: {"value": "ssd", "metadata": {}}'
        facts = (*STYLES["ngc-mxnet-ssd"].facts, ("workload", "resnet50"))
        lines = [line, *written("ngc-mxnet-ssd")]
        reason = "workload is ssd by the log, resnet50 by the command line"
        assert measure_written("ngc-mxnet-ssd", lines, facts=facts).reason == reason


def test_the_batch_is_told_by_the_only_line_of_a_run_that_broke_off():
    [*head, line] = written("megatron", last=10)
    measured = measure_one([*head, line], widest=True)
    assert measured.reason.startswith("the log allows no window after a warm-up")
