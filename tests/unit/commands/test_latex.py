"""A suite's table for LaTeX."""

import pytest
from reperf.cli import main
from reperf.tables import SUMMARY, write_table


@pytest.fixture
def summary(tmp_path):
    """Two cells of a suite, one of which has no number, and a system with a name for LaTeX."""
    names = {
        "suite": "small_fp32",
        "system": "pytorch",
        "workload": "resnet50",
        "precision": "fp32",
    }
    size = {"batch_size_per_device": 8, "topology": "1n1g", "num_nodes": 1, "devices_per_node": 1}
    setting = {"input": "synthetic", "shape": "image_size=64", "device": "cpu", "unit": "images/s"}
    cell = dict.fromkeys(SUMMARY) | names | size | setting | {"status": "ok", "n": 3}
    numbers = {"throughput_median": 1234.5, "throughput_min": 1200.0, "throughput_max": 1250.25}
    numbers |= {"speedup": 1.0, "efficiency": 1.0, "load": 0.4}
    oom = {"system": "a_b&c", "variant": "50%", "status": "oom", "n": 0}
    path = tmp_path / "summary.csv"
    write_table(path, [cell | numbers, cell | oom], SUMMARY)
    return path


def test_a_suite_is_a_tabular_ruled_by_booktabs(summary, capsys):
    assert main(["latex", "small_fp32", "--summary", str(summary)]) == 0
    title, *lines = capsys.readouterr().out.splitlines()
    assert title == "% ResNet-50 v1.5 (64 px), FP32, batch size 8, synthetic, on CPUs; images/s"
    assert lines[:2] == [r"\begin{tabular}{llrrrrrrl}", r"\toprule"]
    numbers = r"1234.50 & 1200.00 & 1250.25 & 1.00 & 100.0 \% & 3"
    assert rf"PyTorch & 1n1g & {numbers} & not usable: 40.0 \% other work \\" in lines
    assert r"a\_b\&c, 50\% & 1n1g & oom &  &  &  &  & 0 &  \\" in lines
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]


def test_a_suite_that_is_not_there_is_one_line(summary, capsys):
    assert main(["latex", "small-fp32", "--summary", str(summary)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"reperf: {summary}: no suite 'small-fp32'; allowed: small_fp32")
    assert len(said.splitlines()) == 1
