"""A copy of a log that somebody has changed is told by its times, and counts as no repeat."""

import re

import pytest
from reperf.config import Suite
from reperf.measuring.log_sources import measure_suite
from written import uneven


@pytest.mark.parametrize(
    ("name", "workload", "changed", "into"),
    [
        ("torchtitan", "bert-base", r"2020-09-15", "2020-09-16"),
        ("oneflow-resnet50", "resnet50", r"iter (\d+),", lambda one: f"iter {int(one[1]) - 20},"),
        ("megatron", "bert-base", r"lm loss: \S+", "lm loss: 1.0"),
        ("pytorch-resnet50", "resnet50", r"Loss \S+", "Loss 1.0"),
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
