"""The pages on new workloads and frameworks, followed to the letter.

docs/add-a-workload.md adds a workload that two frameworks train, and one of a new kind of data;
docs/add-a-framework.md adds a third framework.
"""

import re

import pandas as pd
import pytest
from small_benchmark import ROOT, Benchmark, new_benchmark
from trainer import losses, step_log

WORKLOAD, FRAMEWORK = (ROOT / f"docs/add-a-{what}.md" for what in ("workload", "framework"))
FILE = re.compile(
    r"^`((?:workflow|local|envs)/\S+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL
)
CAPABILITY = re.compile(
    r"`workflow/systems/(\w+)/system.yaml`[^`:]*:\n\n```yaml\n(  \w+:\n.*?)^```",
    re.MULTILINE | re.DOTALL,
)
SYSTEMS = ("pytorch", "tensorflow2")
REPORTS = {"local/softmax.yaml": 4, "local/logistic.yaml": 1, "local/numpy.yaml": 1}
"""How many cells each has."""
RUN = "results/runs/softmax-synthetic/{}/1n1g/1/train.log"
CLICKS = "results/runs/logistic/pytorch/1n2g/1/train.log"


@pytest.fixture
def followed(tmp_path, built_environments) -> Benchmark:
    """A benchmark to which the pages have been applied."""
    benchmark = new_benchmark(tmp_path / "benchmark", built_environments(*SYSTEMS))
    texts = [page.read_text(encoding="utf-8") for page in (WORKLOAD, FRAMEWORK)]
    for path, content in FILE.findall("".join(texts)):
        file = benchmark.folder / path
        file.parent.mkdir(exist_ok=True)
        assert not file.exists()
        file.write_text(content, encoding="utf-8")
    capabilities = CAPABILITY.findall(texts[0])
    assert [system for system, _ in capabilities] == [*SYSTEMS, "pytorch"]
    for system, capability in capabilities:
        described = benchmark.folder / f"workflow/systems/{system}/system.yaml"
        known = described.read_text(encoding="utf-8")
        described.write_text(known.replace("\nworkloads:\n", f"\nworkloads:\n{capability}"))
    return benchmark


@pytest.mark.every_system
def test_a_workload_and_a_framework_are_files_of_their_own(followed):
    for config, cells in REPORTS.items():
        answer = followed.snakemake("--configfile", config)
        assert answer.returncode == 0, answer.stdout
        summary = pd.read_csv(followed.folder / "results/summary.csv")
        assert set(summary["status"]) == {"ok"}
        assert len(summary) == cells
    learnt = step_log((followed.folder / CLICKS).read_text())[1]
    assert learnt[-1]["loss"] < learnt[0]["loss"] - 0.1
    first, *others = (
        losses((followed.folder / RUN.format(system)).read_text(), 0)
        for system in (*SYSTEMS, "numpy")
    )
    for other in others:
        assert other == pytest.approx(first, abs=1e-4)
