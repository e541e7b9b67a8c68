"""The pages on new systems, workloads and frameworks, followed to the letter.

docs/add-a-workload.md adds a workload that two frameworks train, and one of a new kind of data;
docs/add-a-framework.md adds a third framework, docs/add-a-system.md a variant of PyTorch and a
system whose weights lie on parameter servers.
"""

import re
from collections.abc import Callable

import pandas as pd
import pytest

from tests.helpers.servers import ON_A_SYSTEM, PAGES, follow_pages
from tests.helpers.small_benchmark import SMALL, Benchmark, new_benchmark
from tests.systems.trainer import losses

CAPABILITY = re.compile(
    r"`workflow/systems/(\w+)/system.yaml`[^`:]*:\n\n```yaml\n(  \w+:\n.*?)^```",
    re.MULTILINE | re.DOTALL,
)
SYSTEMS = ("pytorch", "tensorflow2")
RUN = "results/runs/softmax-synthetic/{}/1n1g/1/train.log"
VISITS = "results/runs/logistic/pytorch/1n2g/1/train.log"


@pytest.fixture
def follow(tmp_path, built_environments, begun) -> Callable[..., Benchmark]:
    """Make a benchmark to which the pages have been applied, with some systems' environments."""

    def apply(*systems: str) -> Benchmark:
        benchmark = new_benchmark(tmp_path / "benchmark", built_environments(*systems))
        benchmark.take_over(begun)
        follow_pages(benchmark.folder)
        capabilities = CAPABILITY.findall(PAGES[0])
        assert [system for system, _ in capabilities] == [*SYSTEMS, "pytorch"]
        for system, capability in capabilities:
            described = benchmark.folder / f"workflow/systems/{system}/system.yaml"
            known = described.read_text(encoding="utf-8")
            described.write_text(known.replace("\nworkloads:\n", f"\nworkloads:\n{capability}"))
        return benchmark

    return apply


def run(benchmark: Benchmark, config: str, cells: int) -> None:
    benchmark.made("--configfile", config)
    summary = pd.read_csv(benchmark.folder / "results/summary.csv")
    assert set(summary["status"]) == {"ok"}
    assert len(summary) == cells


def test_a_system_is_what_it_says_and_what_it_brings(begun_benchmark, built_pytorch):
    follow_pages(begun_benchmark.folder, ON_A_SYSTEM)
    begun_benchmark.configure(suites=SMALL["suites"][:1], topologies=["1n2g"], repeats=1)
    begun_benchmark.made("results/summary.csv", "--config", "systems=pytorch-foreach")
    summary = pd.read_csv(begun_benchmark.folder / "results/summary.csv")
    assert summary[["system", "status"]].to_numpy().tolist() == [["pytorch-foreach", "ok"]]


@pytest.mark.weekly
def test_a_kind_of_data_is_files_of_its_own(follow):
    benchmark = follow("pytorch")
    run(benchmark, "reports/logistic.yaml", 1)
    first, *_, last = losses((benchmark.folder / VISITS).read_text(), 0)
    assert last < first - 0.05


@pytest.mark.weekly
def test_a_workload_and_a_framework_are_files_of_their_own(follow):
    benchmark = follow(*SYSTEMS)
    run(benchmark, "reports/softmax.yaml", 4)
    run(benchmark, "reports/numpy.yaml", 1)
    # Trainers in their own time may be refused: few iterations may not overlap on a busy machine.
    benchmark.snakemake("--configfile", "reports/numpy-servers.yaml")
    summary = pd.read_csv(benchmark.folder / "results/summary.csv")
    statuses = summary.set_index(summary["variant"].fillna("") + summary["topology"])["status"]
    statuses = statuses.to_dict()
    assert {statuses.pop("async1n2g"), *statuses.values()} <= {"ok", "refused"}
    assert set(statuses.values()) == {"ok"}
    assert set(summary["servers"]) == {"1 server a node", "2 servers a node"}
    first, *others = (
        losses((benchmark.folder / RUN.format(system)).read_text(), 0)
        for system in (*SYSTEMS, "numpy", "numpy-servers+servers-1")
    )
    for other in others:
        assert other[: len(first)] == pytest.approx(first, abs=1e-4)
