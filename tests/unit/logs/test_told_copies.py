"""A copy of a log that somebody has changed is told by its times, and counts as no repeat."""

import re
from pathlib import Path

import pytest
from reperf.config import Suite
from reperf.measuring.log_sources import measure_suite

from tests.unit.logs.written import STYLES, uneven

DAY = 86_400_000
"""In milliseconds."""
LATER = 99_999
"""Seconds between the begin of two runs."""


def text_of(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def rows(
    folder: Path, cell: str, *logs: str, workload: str = "resnet50", second: dict | None = None
) -> list[dict]:
    """How logs are measured as the repeats of one cell.

    Args:
        cell: what their path says of them, as in 2n2g/x_b8.
        second: how the second one is measured, if not as the first.
    """
    paths = [folder / f"{cell}_fp32_{repeat}.log" for repeat in range(len(logs))]
    paths[0].parent.mkdir()
    for path, text in zip(paths, logs, strict=True):
        path.write_text(text)
    sources = [str(folder)] if second is None else [str(paths[0]), {"path": str(paths[1])} | second]
    suite = {"name": "theirs", "workload": workload, "precision": "fp32", "from": sources}
    return measure_suite(Suite.model_validate(suite), [])


def assert_copy(first: dict, second: dict) -> None:
    """The second log of two is told to be a copy of the first."""
    assert (first["status"], second["status"]) == ("ok", "refused")
    assert second["reason"] == f"counted already, as {first['log']}: the same times in the window"


@pytest.mark.parametrize(
    ("name", "workload", "changed", "into"),
    [
        ("torchtitan", "bert-base", r"2020-09-15", "2020-09-16"),
        ("oneflow-resnet50", "resnet50", r"iter (\d+),", lambda one: f"iter {int(one[1]) - 20},"),
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


def test_a_copy_that_is_measured_in_another_window(tmp_path):
    text = text_of(uneven("pytorch-resnet50"))
    copy = re.sub(r"Loss \S+", "Loss 1.0", text)
    window = {"window": {"warmup": 40, "measured": 150}}
    assert_copy(*rows(tmp_path, "2n2g/x_b8", text, copy, second=window))


@pytest.mark.parametrize("name", ["mlperf", "oneflow-resnet50", "tensorflow2-resnet50"])
def test_a_copy_of_which_lines_are_left_out(tmp_path, name):
    lines = uneven(name)
    first = len(STYLES[name].head) + 1
    some = [*lines[: first + 2], lines[first + 3], *lines[first + 5 :]]  # 20 and 120 are left
    assert_copy(*rows(tmp_path, "2n2g/x_b8", text_of(lines), text_of(some)))


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


@pytest.mark.parametrize(("jitter", "counted"), [(0.3, 1), (0.0, 2)])
def test_coarse_clocks_need_other_digits_to_tell_a_copy(tmp_path, jitter, counted):
    """Two runs whose clock and speeds are steady may well be alike: nothing tells a copy.

    The clock of tf_cnn_benchmarks is of whole seconds, and its speeds are means.
    """

    def log(began: int) -> str:
        lines = (
            f"{step}\timages/sec: {512 + jitter * (step * 7 % 13):.1f} +/- 0.4 "
            f"(jitter = 0.7)\t7.{step}1 {began + 2 * step}"
            for step in range(10, 201, 10)
        )
        return text_of(["Batch size:  1024 global", "             256 per device", *lines])

    found = rows(tmp_path, "1n4g/x_b256", log(1_600_000_000), log(1_600_000_000 + LATER))
    assert [row["status"] for row in found].count("ok") == counted, found


@pytest.mark.parametrize(("other_loss", "counted"), [(0.0, 1), (0.001, 2)])
def test_a_short_log_of_whole_seconds_is_told_by_its_losses(tmp_path, other_loss, counted):
    """Steady times tell nothing, but with all losses the same, a log with other dates is a copy."""

    def log(more: float, later: int) -> str:
        steps = range(20, 121, 20)
        lines = [
            oneflow(n, 7 - n / 999 + more, 2048, str(1_600_000_000 + n + later)) for n in steps
        ]
        return text_of(lines)

    found = rows(tmp_path, "1n8g/x_b256", log(0.0, 0), log(other_loss, LATER))
    assert [row["status"] for row in found].count("ok") == counted, found
