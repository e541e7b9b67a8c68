"""The test clusters, for every test that asks for one."""

from collections.abc import Iterator

import pytest

from tests.helpers.refusal import cannot_run
from tests.slurm.cluster import SlurmCluster, why_not

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


@pytest.fixture(autouse=True)
def _tidy(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave the cluster idle and whole to the next test."""
    yield
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster").tidy()
