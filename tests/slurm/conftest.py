"""The test cluster, for every test that asks for it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import SlurmCluster, why_not
from reperf.systems import load_systems
from small_benchmark import ROOT, new_benchmark


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """Four idle nodes of eight GPUs; a skip where that cannot be, but a failure in CI."""
    if reason := why_not():
        refuse = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        refuse(f"no Slurm cluster can run here: {reason}")
    with SlurmCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """The systems' environments, all built: inside the cluster there is no internet."""
    folder = ROOT / ".envs"
    folder.mkdir(exist_ok=True)
    builder = new_benchmark(tmp_path_factory.mktemp("environments") / "benchmark", folder)
    every = pytestconfig.getoption("systems") == "all"
    systems = load_systems().values() if every else [load_systems()["pytorch"]]
    built = [system for system in systems if system.trainer.exists()]
    targets = sorted({f"{system.environment}/environment.json" for system in built})
    answer = builder.snakemake(*targets, timeout=2400)
    assert answer.returncode == 0, answer.stdout
    return folder


@pytest.fixture(autouse=True)
def _tidy(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave the cluster idle and whole to the next test."""
    yield
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster").tidy()
