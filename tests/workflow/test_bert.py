"""BERT on its way to the report, which shows sentences and real tokens a second."""

import pandas as pd
import pytest
from reperf.systems import load_systems
from shapes import TINY_BERT
from small_benchmark import Benchmark


@pytest.fixture
def systems(request: pytest.FixtureRequest) -> list[str]:
    """The systems that train BERT on a CPU, with their environments."""
    if request.config.getoption("systems") == "one":
        return ["pytorch"]
    request.getfixturevalue("every_environment")
    return [
        name
        for name, one in load_systems().items()
        if one.why_not("bert-base", "fp32", "cpu") is None
    ]


def test_sentences_and_tokens_are_measured_and_every_system_starts_from_the_same_loss(
    begun_benchmark: Benchmark, systems: list[str]
):
    benchmark = begun_benchmark
    tokens = {
        "name": "tokens",
        "workload": "bert-base",
        "precision": "fp32",
        "batch_size": 4,
        "shape": TINY_BERT,
        "input": "synthetic",
        "unit": "tokens",
        "systems": systems,
    }
    sentences = tokens | {"name": "sentences", "unit": "sentences", "systems": ["pytorch"]}
    benchmark.configure(topologies=["1n1g"], repeats=1, suites=[tokens, sentences])
    answer = benchmark.snakemake(timeout=3600)
    assert answer.returncode == 0, answer.stdout
    summary = pd.read_csv(benchmark.folder / "results/summary.csv").set_index("suite")
    assert set(summary["status"]) == {"ok"}
    assert sorted(summary.loc[["tokens"], "system"]) == sorted(systems)
    ratios = summary["throughput_median"] / summary["also_median"]
    # The batch, of which every iteration is on the same, has 122 real tokens, and 6 of padding.
    for suite, other, ratio in (("tokens", "sentences", 122 / 4), ("sentences", "tokens", 4 / 122)):
        assert set(summary.loc[[suite], "unit"]) == {f"{suite}/s"}
        assert set(summary.loc[[suite], "also_unit"]) == {f"{other}/s"}
        assert set(ratios.loc[[suite]].round(9)) == {round(ratio, 9)}
    runs = pd.read_csv(benchmark.folder / "results/measurements.csv")
    assert list(runs["start_loss"]) == pytest.approx([runs["start_loss"][0]] * len(runs), abs=1e-4)
    text = (benchmark.folder / "results/report.md").read_text(encoding="utf-8")
    assert "**starts elsewhere**" not in text
