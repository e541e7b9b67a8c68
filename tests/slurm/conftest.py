"""The test cluster, for every test that asks for it."""

from collections.abc import Iterator

import pytest
from cluster import SlurmCluster, why_not
from refusal import cannot_run


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
