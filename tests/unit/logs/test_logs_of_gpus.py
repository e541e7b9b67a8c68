"""What trainers printed on real GPUs: docs/gpu-builds.md states these losses and throughputs."""

import json
from pathlib import Path
from zipfile import ZipFile

import pytest
from reperf.cli import main

LOGS = Path(__file__).parents[2] / "data" / "logs" / "h100.zip"
ALONE = LOGS.with_name("h200.zip")
TRAINED = 13


def last_loss(name: str) -> float:
    text = ZipFile(LOGS).read(f"{name}.log").decode()
    steps = [line for line in text.splitlines() if '"tracked_stats"' in line]
    return json.loads(steps[-1].removeprefix(":::MLLOG "))["value"]["loss"]


def test_all_that_trained_are_measured_and_memory_that_was_full_is_refused(capsys):
    main(["measure", "--window", "2:10", str(LOGS)])
    said = capsys.readouterr().out
    assert f"{TRAINED} measured, 2 refused" in said


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


def test_the_throughputs_on_jpegs_are_those_of_their_logs(capsys):
    main(["measure", "--window", "20:120", str(LOGS.with_name("h100-alone.zip"))])
    said = capsys.readouterr().out
    for median in ("4029.77", "5552.55"):
        assert f"  {median}  " in said


def test_the_throughputs_of_the_h200_are_those_of_its_logs(capsys):
    main(["measure", "--window", "20:120", str(ALONE)])
    said = capsys.readouterr().out
    for median in ("5060.29", "5200.64", "6098.96", "7679.71"):
        assert f"  {median}  " in said
