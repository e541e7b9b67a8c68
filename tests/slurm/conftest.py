"""The test cluster, for every test that asks for it."""

from collections.abc import Iterator

import pytest

from tests.helpers.refusal import cannot_run
from tests.slurm.cluster import SlurmCluster, why_not


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.cluster)
    # One process has the cluster.
    item.add_marker(pytest.mark.xdist_group("cluster"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """Four idle nodes of eight GPUs; a skip where that cannot be, but a failure in CI."""
    if reason := why_not():
        cannot_run(f"a Slurm cluster: {reason}")
    with SlurmCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(autouse=True)
def _tidy(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave the cluster idle and whole to the next test."""
    yield
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster").tidy()
