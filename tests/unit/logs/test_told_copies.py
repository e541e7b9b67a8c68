"""A copy of a log whose text was changed is recognised by its times, and counts as no repeat."""

import re
from pathlib import Path

import pytest
from reperf.config import Suite
from reperf.measuring.suite_rows import measure_suite

from tests.unit.logs.written import uneven

DAY = 86_400_000
"""In milliseconds."""
LATER = 99_999
"""Seconds between the begin of two runs."""


def text_of(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def rows(folder: Path, cell: str, *logs: str, workload: str = "resnet50") -> list[dict]:
    """How logs are measured as the repeats of one cell.

    Args:
        cell: what their path says of them, as in 2n2g/x_b8.
    """
    paths = [folder / f"{cell}_fp32_{repeat}.log" for repeat in range(len(logs))]
    paths[0].parent.mkdir()
    for path, text in zip(paths, logs, strict=True):
        path.write_text(text)
    suite = {"name": "theirs", "workload": workload, "precision": "fp32", "from": str(folder)}
    return measure_suite(Suite.model_validate(suite), [])


def assert_copy(first: dict, second: dict) -> None:
    """The second log of two is told to be a copy of the first."""
    assert (first["status"], second["status"]) == ("ok", "refused")
    assert (
        second["reason"]
        == f"counted already, as {first['log']}: the same lines or times in the window"
    )


@pytest.mark.parametrize(
    ("name", "workload", "changed", "into"),
    [
        ("torchtitan", "bert-base", r"2020-09-15", "2020-09-16"),
        ("oneflow-resnet50", "resnet50", r"loss: \S+", "loss: 1.0,"),
        ("megatron", "bert-base", r"lm loss: \S+", "lm loss: 1.0"),
        ("pytorch-resnet50", "resnet50", r"Loss \S+", "Loss 1.0"),
        ("ngc-mxnet-resnet50", "resnet50", r"2020-09-15", "2020-09-16"),
        ("mlperf", "resnet50", r'"time_ms": (\d+)', lambda one: f'"time_ms": {int(one[1]) + DAY}'),
    ],
)
def test_whatever_else_is_changed(tmp_path, name, workload, changed, into):
    text = text_of(uneven(name))
    copy = re.sub(changed, into, text)
    assert copy != text
    assert_copy(*rows(tmp_path, "2n2g/x_b8", text, copy, workload=workload))


def oneflow(step: int, loss: float, speed: int, time: str) -> str:
    return (
        f"train: epoch 0, iter {step}, loss: {loss:.4f}, top_1: 0.001, top_k: 0.005, "
        f"samples/s: {speed}.0 {time}"
    )


@pytest.mark.parametrize("step_time", ["{:.3f}", "{:.0f}.000"])
def test_repeats_that_ran_at_the_same_time_all_count(tmp_path, step_time):
    """Some of their lines have the same milliseconds, several in a row, or whole seconds."""

    def log(repeat: int) -> str:
        times = {
            step: 1_600_000_000 + 2 * step + max(0, step - 60) * repeat / 1e3
            for step in range(20, 121, 5)
        }
        return text_of([oneflow(n, repeat, 1024, step_time.format(at)) for n, at in times.items()])

    assert [one["reason"] for one in rows(tmp_path, "1n8g/x_b256", *map(log, range(3)))] == [""] * 3


def test_runs_with_a_coarse_and_steady_clock_all_count(tmp_path):
    """Two of them may well take the same times. The clock is of whole seconds."""

    def log(began: int) -> str:
        lines = (
            f"{step}\timages/sec: 512.0 +/- 0.4 (jitter = 0.7)\t7.{step}1 {began + 2 * step}"
            for step in range(10, 201, 10)
        )
        return text_of(["Batch size:  1024 global", "             256 per device", *lines])

    found = rows(tmp_path, "1n4g/x_b256", log(1_600_000_000), log(1_600_000_000 + LATER))
    assert [row["status"] for row in found] == ["ok", "ok"]
