"""The page on notebooks, word for word, on a finished report."""

import re
import sys

import pytest
import reperf
from reperf.errors import ReperfError

from tests.helpers.small_benchmark import ROOT, Benchmark

PAGE = (ROOT / "docs/notebooks.md").read_text(encoding="utf-8")
LOG = ROOT / "tests/data/logs/oneflow_resnet50_2n8g_b128_fp32.log"
CHECKS = """
assert set(runs["status"]) == {"ok"} and len(runs) == len(measurements)
assert sorted(runs["throughput"]) == sorted(measurements["throughput"])
assert list(ranking["verdict"]).count("fastest") == len(ranking.groupby(["suite", "topology"]))
assert ranking["ratio"].max() == 1
"""


def test_every_example_of_the_page_runs(finished_benchmark: Benchmark):
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 4
    finished_benchmark.said(sys.executable, "-c", "\n".join([*blocks, CHECKS]))
    assert (finished_benchmark.folder / "throughput.png").stat().st_size > 10_000


def test_the_functions_on_the_page_are_those_of_the_package():
    assert sorted(set(re.findall(r"`reperf\.(\w+)\(", PAGE))) == sorted(reperf.__all__)
    assert "measure" in dir(reperf)


def test_a_log_is_measured_with_types_and_what_it_leaves_out():
    runs = reperf.measure(LOG)
    assert runs[["status", "first", "last", "unit"]].values.tolist() == [
        ["ok", 20, 120, "images/s"]
    ]
    assert str(runs.dtypes["first"]) == "Int64"
    assert str(runs.dtypes["throughput"]) == "float64"
    wide = reperf.measure([LOG], window="all").iloc[0]
    assert (wide["first"], wide["last"]) == wide["widest"]


def test_what_is_wrong_is_one_line():
    for call, line in (
        (lambda: reperf.measure("nowhere.log"), "nowhere.log: no such file or folder"),
        (lambda: reperf.measure(LOG, bach_size=3), "measure: bach_size: no such fact; allowed: gl"),
        (lambda: reperf.plot("nowhere.csv", "bars"), "plot: kind: got 'bars'; allowed: throughput"),
        (lambda: reperf.read_summary("nowhere.csv"), "nowhere.csv: No such file or directory"),
    ):
        with pytest.raises(ReperfError, match=re.escape(line)):
            call()
    with pytest.raises(AttributeError, match="no attribute 'mesure'"):
        reperf.mesure  # noqa: B018 - asked for
