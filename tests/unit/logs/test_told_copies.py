"""A copy of a log that somebody has changed is told by its times, and counts as no repeat."""

import re

import pytest
from reperf.config import Suite
from reperf.measuring.log_sources import measure_suite

from tests.unit.logs.written import STYLES, uneven

DAY = 86_400_000
"""In milliseconds."""


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
    text = "".join(f"{line}\n" for line in uneven(name))
    folder = tmp_path / "2n2g"
    folder.mkdir()
    for repeat, content in enumerate((text, re.sub(changed, into, text))):
        (folder / f"x_b8_fp32_{repeat}.log").write_text(content)
    assert content != text
    suite = {"name": "theirs", "workload": workload, "precision": "fp32", "from": [str(tmp_path)]}
    first, second = measure_suite(Suite.model_validate(suite), [])
    assert (first["status"], second["status"]) == ("ok", "refused")
    assert second["reason"] == f"counted already, as {first['log']}: the same times in the window"


def test_a_copy_that_is_measured_in_another_window(tmp_path):
    folder = tmp_path / "2n2g"
    folder.mkdir()
    text = "".join(f"{line}\n" for line in uneven("pytorch-resnet50"))
    logs = [folder / f"x_b8_fp32_{repeat}.log" for repeat in range(2)]
    for log, content in zip(logs, (text, re.sub(r"Loss \S+", "Loss 1.0", text)), strict=True):
        log.write_text(content)
    suite = {
        "name": "theirs",
        "workload": "resnet50",
        "precision": "fp32",
        "from": [
            {"path": str(logs[0])},
            {"path": str(logs[1]), "window": {"warmup": 40, "measured": 150}},
        ],
    }
    first, second = measure_suite(Suite.model_validate(suite), [])
    assert (first["status"], second["status"]) == ("ok", "refused")
    assert second["reason"] == f"counted already, as {first['log']}: the same times in the window"


@pytest.mark.parametrize("name", ["mlperf", "oneflow-resnet50", "tensorflow2-resnet50"])
def test_a_copy_of_which_lines_are_left_out(tmp_path, name):
    lines = uneven(name)
    first = len(STYLES[name].head) + 1
    some = [*lines[: first + 2], lines[first + 3], *lines[first + 5 :]]  # 20 and 120 are left
    folder = tmp_path / "2n2g"
    folder.mkdir()
    for repeat, text in enumerate((lines, some)):
        (folder / f"x_b8_fp32_{repeat}.log").write_text("".join(f"{line}\n" for line in text))
    suite = {"name": "theirs", "workload": "resnet50", "precision": "fp32", "from": [str(tmp_path)]}
    first, second = measure_suite(Suite.model_validate(suite), [])
    assert (first["status"], second["status"]) == ("ok", "refused")
    assert second["reason"] == f"counted already, as {first['log']}: the same times in the window"


@pytest.mark.parametrize("step_time", ["{:.3f}", "{:.0f}.000"])
def test_repeats_that_ran_at_the_same_time_all_count(tmp_path, step_time):
    """Some of their lines have the same milliseconds, several in a row, or whole seconds."""
    folder = tmp_path / "1n8g"
    folder.mkdir()

    def at(step: int, repeat: int) -> float:
        return 1_600_000_000 + 2 * step + max(0, step - 60) * repeat / 1e3

    for repeat in range(3):
        lines = (
            f"train: epoch 0, iter {step}, loss: {repeat}.0, top_1: 0.001, top_k: 0.005, "
            f"samples/s: 1024.0 {step_time.format(at(step, repeat))}\n"
            for step in range(20, 121, 5)
        )
        (folder / f"x_b256_fp32_{repeat}.log").write_text("".join(lines))
    suite = {"name": "theirs", "workload": "resnet50", "precision": "fp32", "from": [str(tmp_path)]}
    rows = measure_suite(Suite.model_validate(suite), [])
    assert [row["reason"] for row in rows] == [""] * 3


def tf_cnn(began: int, seconds: int, jitter: float) -> str:
    """A log of tf_cnn_benchmarks: a clock of whole seconds, and mean speeds.

    Args:
        began: when, in seconds since 1970.
        seconds: that ten steps take.
        jitter: by how much the speeds go up and down.
    """
    lines = (
        f"{step}\timages/sec: {1024 * 10 / seconds + jitter * (step * 7 % 13):.1f} +/- 0.4 "
        f"(jitter = 0.7)\t7.{step}1 {began + step // 10 * seconds}"
        for step in range(10, 201, 10)
    )
    return "\n".join(("Batch size:  1024 global", "             256 per device", *lines, ""))


@pytest.mark.parametrize(("jitter", "counted"), [(0.3, 1), (0.0, 2)])
def test_coarse_clocks_need_other_digits_to_tell_a_copy(tmp_path, jitter, counted):
    """Two runs whose clock and speeds are steady may well be alike: nothing tells a copy."""
    folder = tmp_path / "1n4g"
    folder.mkdir()
    for repeat in range(2):
        log = folder / f"x_b256_fp32_{repeat}.log"
        log.write_text(tf_cnn(1_600_000_000 + repeat * 99_999, 20, jitter))
    suite = {"name": "theirs", "workload": "resnet50", "precision": "fp32", "from": [str(tmp_path)]}
    rows = measure_suite(Suite.model_validate(suite), [])
    assert [row["status"] for row in rows].count("ok") == counted, rows


@pytest.mark.parametrize(("other_loss", "counted"), [(0.0, 1), (0.001, 2)])
def test_a_short_log_of_whole_seconds_is_told_by_its_losses(tmp_path, other_loss, counted):
    """Steady times tell nothing, but with all losses the same, a log with other dates is a copy."""
    folder = tmp_path / "1n8g"
    folder.mkdir()
    for repeat in range(2):
        lines = (
            f"train: epoch 0, iter {step}, loss: {7 - step / 999 + repeat * other_loss:.4f}, "
            "top_1: 0.001, top_k: 0.005, samples/s: 2048.0 "
            f"{1_600_000_000 + step + repeat * 99_999}\n"
            for step in range(20, 121, 20)
        )
        (folder / f"x_b256_fp32_{repeat}.log").write_text("".join(lines))
    suite = {"name": "theirs", "workload": "resnet50", "precision": "fp32", "from": [str(tmp_path)]}
    rows = measure_suite(Suite.model_validate(suite), [])
    assert [row["status"] for row in rows].count("ok") == counted, rows
