"""What trainers printed on real GPUs: docs/results.md states these losses and throughputs."""

import json
import re
from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import pytest
import reperf
from reperf.cli import main

ROOT = Path(__file__).parents[3]
MEASURED = ROOT / "data/measured"


def last_loss(name: str) -> float:
    text = ZipFile(MEASURED / "h100.zip").read(f"{name}.log").decode()
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
    main(["measure", "--window", window, str(MEASURED / logs)])
    printed = capsys.readouterr().out
    assert [one for one in said if one not in printed] == []


def test_the_page_of_results_has_the_throughput_of_each_log():
    folders = [
        MEASURED / name for name in ("h200-environment", "h200-environment-2", "h200-reports")
    ]
    table = pd.concat([reperf.measure(folder, window=(30, 80)) for folder in folders])
    table = table[table.status == "ok"]
    page = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| ([\d,.]+ \w+/s) \|.*`(\S+\.log)` \|", page)
    measured = [
        (f"{row.throughput:,.2f} {row.unit}", Path(row.log).name) for row in table.itertuples()
    ]
    assert sorted(rows) == sorted(measured)
    report = reperf.measure(MEASURED / "h200-report", window=(30, 80))
    throughputs = report.throughput[report.status == "ok"]
    assert len(throughputs) == 6
    assert [one for one in throughputs if f"| {one:,.2f} |" not in page] == []


def test_the_archive_of_a_gpu_verifies(capsys):
    archive = MEASURED / "h200-report/resnet50-amp-synthetic.zip"
    assert main(["archive", "verify", str(archive)]) == 0
    assert "its logs give its tables" in capsys.readouterr().out
