"""What tests share: a small real benchmark in a folder of its own."""

import shutil
import signal
from pathlib import Path

import pytest
from small_benchmark import ROOT, Benchmark, new_benchmark


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--systems",
        choices=("one", "all"),
        default="one",
        help="train with PyTorch alone, or with every system (make test-all)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "every_system: trains in every framework; make test-all")
    # Started in a script's background, it would ignore Ctrl-C, and so would all that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("systems") == "one":
        left_out = [item for item in items if item.get_closest_marker("every_system")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def environments() -> Path:
    """Where the systems' environments are kept between test runs."""
    folder = ROOT / ".envs"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def benchmark(tmp_path: Path, environments: Path) -> Benchmark:
    """A small benchmark of which nothing has been built yet."""
    return new_benchmark(tmp_path / "benchmark", environments)


@pytest.fixture(scope="session")
def _finished(tmp_path_factory: pytest.TempPathFactory, environments: Path) -> Benchmark:
    finished = new_benchmark(tmp_path_factory.mktemp("finished") / "benchmark", environments)
    answer = finished.snakemake()
    assert answer.returncode == 0, answer.stdout
    return finished


@pytest.fixture
def finished_benchmark(tmp_path: Path, _finished: Benchmark) -> Benchmark:
    """A copy of a small benchmark that has run to its end."""
    folder = tmp_path / "benchmark"
    shutil.copytree(_finished.folder, folder, symlinks=True)
    return Benchmark(folder)
