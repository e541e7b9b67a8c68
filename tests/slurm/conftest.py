"""The test clusters, for every test that asks for one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.refusal import cannot_run
from tests.slurm.cluster import SlurmCluster, why_not
from tests.slurm.slurm_benchmark import SlurmBenchmark, new_slurm_benchmark

SECOND = ("test_doctor_on_nodes", "test_hosts", "test_sites_on_slurm", "test_survey_on_slurm")
"""Half of the files, by their seconds: two processes test side by side, each on its cluster."""


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.cluster)
    group = "second-cluster" if item.path.stem in SECOND else "cluster"
    item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """Four idle nodes of eight GPUs; a skip where that cannot be, but a failure in CI."""
    if reason := why_not():
        cannot_run(f"a Slurm cluster: {reason}")
    with SlurmCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def benchmark(tmp_path: Path, environments: Path, cluster: SlurmCluster) -> SlurmBenchmark:
    """A benchmark on the cluster, of which nothing has been run yet."""
    return new_slurm_benchmark(tmp_path / "benchmark", environments, cluster)


@pytest.fixture(autouse=True)
def _tidy(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave the cluster idle and whole to the next test."""
    yield
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster").tidy()
