"""The test cluster, for every test that asks for it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from reperf.builds import LockBuild
from reperf.systems import load_systems

from tests.helpers.refusal import cannot_run
from tests.helpers.small_image import link_image
from tests.slurm.cluster import SlurmCluster, why_not


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """Four idle nodes of eight GPUs; a skip where that cannot be, but a failure in CI."""
    if reason := why_not():
        cannot_run(f"a Slurm cluster: {reason}")
    with SlurmCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def complete_image(tmp_path_factory: pytest.TempPathFactory, plain_image: Path) -> Iterator[Path]:
    """An image that lacks nothing, because the cluster has no network to get it from."""
    lock = LockBuild(load_systems()["pytorch"], "cpu").lock.read_text().splitlines()
    more = [line for line in lock if line.startswith(("simplejpeg==", "opencv-python-headless=="))]
    folder = tmp_path_factory.mktemp("image") / "complete"
    yield link_image(plain_image, folder, more)
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def _tidy(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave the cluster idle and whole to the next test."""
    yield
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster").tidy()
