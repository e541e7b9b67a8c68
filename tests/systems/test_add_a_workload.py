"""docs/add-a-workload.md, followed to the letter, adds a workload that two frameworks train."""

import re

import pandas as pd
import pytest
from small_benchmark import ROOT, Benchmark, new_benchmark
from trainer import losses

PAGE = ROOT / "docs/add-a-workload.md"
FILE = re.compile(r"^`((?:workflow|local)/\S+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
CAPABILITY = re.compile(r"^Under `workloads`, .*?^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
SYSTEMS = ("pytorch", "tensorflow2")


@pytest.fixture
def followed(tmp_path, built_environments) -> Benchmark:
    """A benchmark to which the page has been applied."""
    benchmark = new_benchmark(tmp_path / "benchmark", built_environments(*SYSTEMS))
    text = PAGE.read_text(encoding="utf-8")
    for path, content in FILE.findall(text):
        (benchmark.folder / path).write_text(content, encoding="utf-8")
    (capability,) = CAPABILITY.findall(text)
    for system in SYSTEMS:
        described = benchmark.folder / f"workflow/systems/{system}/system.yaml"
        known = described.read_text(encoding="utf-8")
        described.write_text(known.replace("\nworkloads:\n", f"\nworkloads:\n{capability}"))
    return benchmark


@pytest.mark.every_system
def test_a_new_workload_is_data_a_recipe_and_a_short_file_per_framework(followed):
    answer = followed.snakemake("--configfile", "local/softmax.yaml")
    assert answer.returncode == 0, answer.stdout
    summary = pd.read_csv(followed.folder / "results/summary.csv")
    assert set(summary["status"]) == {"ok"}
    assert len(summary) == 4
    first, second = (
        (followed.folder / f"results/runs/softmax-synthetic/{system}/1n1g/1/train.log").read_text()
        for system in SYSTEMS
    )
    assert losses(first, 0) == pytest.approx(losses(second, 0), abs=1e-4)
