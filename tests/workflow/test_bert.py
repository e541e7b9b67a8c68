"""BERT on its way to the report, which shows sentences and real tokens a second."""

import pandas as pd
import pytest

from tests.helpers.shapes import TINY_BERT
from tests.helpers.small_benchmark import Benchmark


@pytest.mark.framework
@pytest.mark.weekly
def test_sentences_and_tokens_are_measured_whichever_is_asked_for(
    begun_benchmark: Benchmark, built_environments
):
    built_environments("pytorch")
    benchmark = begun_benchmark
    tokens = {
        "name": "tokens",
        "workload": "bert-base",
        "precision": "fp32",
        "batch_size": 4,
        "shape": TINY_BERT,
        "input": "synthetic",
        "unit": "tokens",
        "systems": ["pytorch"],
    }
    sentences = tokens | {"name": "sentences", "unit": "sentences"}
    benchmark.configure(topologies=["1n1g"], repeats=1, suites=[tokens, sentences])
    answer = benchmark.snakemake("results/summary.csv")
    assert answer.returncode == 0, answer.stdout
    summary = pd.read_csv(benchmark.folder / "results/summary.csv").set_index("suite")
    assert set(summary["status"]) == {"ok"}
    ratios = summary["throughput_median"] / summary["also_median"]
    # The batch, of which every iteration is on the same, has 122 real tokens, and 6 of padding.
    for suite, other, ratio in (("tokens", "sentences", 122 / 4), ("sentences", "tokens", 4 / 122)):
        assert set(summary.loc[[suite], "unit"]) == {f"{suite}/s"}
        assert set(summary.loc[[suite], "also_unit"]) == {f"{other}/s"}
        assert set(ratios.loc[[suite]].round(9)) == {round(ratio, 9)}
