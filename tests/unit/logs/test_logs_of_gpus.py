"""What trainers printed on real GPUs: docs/gpu-builds.md states these losses and throughputs."""

import json
from zipfile import ZipFile

import pytest
from reperf.cli import main

from tests.unit.logs.asking import REAL


def last_loss(name: str) -> float:
    text = ZipFile(REAL / "h100.zip").read(f"{name}.log").decode()
    steps = [line for line in text.splitlines() if '"tracked_stats"' in line]
    return json.loads(steps[-1].removeprefix(":::MLLOG "))["value"]["loss"]


@pytest.mark.parametrize(
    ("one", "other", "close"),
    [
        ("pytorch-resnet50-fp32", "pytorch-resnet50-tf32", 1e-4),
        ("pytorch-resnet50-bf16", "pytorch-resnet50-fp16-dynamic-loss-scale", 1e-3),
        ("pytorch-resnet50-fp16-compile", "pytorch-resnet50-fp16-dynamic-loss-scale", 1e-3),
        ("pytorch-resnet50-fp16-nccl-2n1g", "jax-resnet50-fp16-nccl-2n1g", 1e-3),
        ("pytorch-bert-base-fp16-nccl-2n1g", "fsdp-bert-base-fp16-nccl-2n1g", 1e-5),
    ],
)
def test_precisions_and_systems_agree(one, other, close):
    assert last_loss(one) == pytest.approx(last_loss(other), rel=close)


@pytest.mark.parametrize(
    ("logs", "window", "said"),
    [
        # All that trained; and memory that was full.
        ("h100.zip", "2:10", ["13 measured, 2 refused"]),
        ("h100-alone.zip", "20:120", ["  4029.77  ", "  5552.55  "]),
        ("h200.zip", "20:120", ["  5060.29  ", "  5200.64  ", "  6098.96  ", "  7679.71  "]),
    ],
)
def test_the_throughputs_are_those_of_their_logs(capsys, logs, window, said):
    main(["measure", "--window", window, str(REAL / logs)])
    printed = capsys.readouterr().out
    assert [one for one in said if one not in printed] == []
