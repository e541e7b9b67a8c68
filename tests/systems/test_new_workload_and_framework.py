"""The pages on new workloads and frameworks, followed to the letter.

docs/add-a-workload.md adds a workload that two frameworks train, docs/add-a-framework.md a third,
and docs/add-a-system.md one whose weights lie on parameter servers.
"""

import re

import pandas as pd
import pytest
from servers import PAGES, follow_pages
from small_benchmark import Benchmark, new_benchmark
from trainer import losses

CAPABILITY = re.compile(
    r"`workflow/systems/(\w+)/system.yaml`[^`:]*:\n\n```yaml\n(  softmax:\n.*?)^```",
    re.MULTILINE | re.DOTALL,
)
SYSTEMS = ("pytorch", "tensorflow2")
RUN = "results/runs/softmax-synthetic/{}/1n1g/1/train.log"


@pytest.fixture
def followed(tmp_path, built_environments) -> Benchmark:
    """A benchmark to which the pages have been applied."""
    benchmark = new_benchmark(tmp_path / "benchmark", built_environments(*SYSTEMS))
    follow_pages(benchmark.folder)
    capabilities = CAPABILITY.findall(PAGES[0])
    assert [system for system, _ in capabilities] == [*SYSTEMS]
    for system, capability in capabilities:
        described = benchmark.folder / f"workflow/systems/{system}/system.yaml"
        known = described.read_text(encoding="utf-8")
        described.write_text(known.replace("\nworkloads:\n", f"\nworkloads:\n{capability}"))
    return benchmark


@pytest.mark.every_system
def test_a_workload_and_a_framework_are_files_of_their_own(followed):
    for config, cells in (("local/softmax.yaml", 4), ("local/numpy.yaml", 1)):
        assert followed.snakemake("--configfile", config).returncode == 0
        summary = pd.read_csv(followed.folder / "results/summary.csv")
        assert set(summary["status"]) == {"ok"}
        assert len(summary) == cells
    # On a busy machine, the windows of trainers in their own time may not overlap enough.
    followed.snakemake("--configfile", "local/numpy-servers.yaml")
    summary = pd.read_csv(followed.folder / "results/summary.csv")
    statuses = summary.set_index(summary["variant"].fillna("") + summary["topology"])["status"]
    statuses = statuses.to_dict()
    assert {statuses.pop("async1n2g"), *statuses.values()} <= {"ok", "refused"}
    assert set(statuses.values()) == {"ok"}
    assert set(summary["servers"]) == {"1 server a node", "2 servers a node"}
    first, *others = (
        losses((followed.folder / RUN.format(system)).read_text(), 0)
        for system in (*SYSTEMS, "numpy", "numpy-servers+servers-1")
    )
    for other in others:
        assert other[: len(first)] == pytest.approx(first, abs=1e-4)
