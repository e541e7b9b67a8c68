"""What tests share: a small real benchmark in a folder of its own."""

import fcntl
import hashlib
import os
import pickle
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from reperf.builds import RECORD, LockBuild
from reperf.drawing.figures import draw_published
from reperf.systems import load_systems

from tests.helpers.refusal import cannot_run
from tests.helpers.small_benchmark import ROOT, Benchmark, new_benchmark
from tests.helpers.small_image import TORCH, make_image

# No test asserts a time: one that waits for its turn on a busy machine is no slower code.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


# Fixture -> the tests that one process runs. What the test cluster leaves behind is told by
# what the machine mounts, and Podman mounts, too: they take turns.
GROUPS = {
    "cluster": "cluster",
    "podman_settings": "cluster",
    "_finished": "_finished",
}


LARGE = "plain_image"
"""The fixture that fetches five gigabytes: make test-all."""
UNIT = ROOT / "tests/unit"
ENGINES = {"bubblewrap": "bwrap", "charliecloud": "ch-run", "podman": "podman"}
"""Container engines that the tests use, by their packages' names, and their programs."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--systems",
        choices=("one", "all"),
        default="one",
        help="train with PyTorch alone, or with every system (make test-all)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "every_system: trains in every framework; make test-all")
    config.addinivalue_line("markers", "each_launcher: of systems started alike, one is enough")
    config.addinivalue_line("markers", "each_backend: of systems with one backend, one is enough")
    # Started in a script's background, it would ignore Ctrl-C, and so would all that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups after this
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("systems") == "one":
        left_out = [
            item
            for item in items
            if item.get_closest_marker("every_system") or LARGE in item.fixturenames
        ]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    # What takes long to make is made once: by the process that runs all tests that need it.
    for item in items:
        if group := next((GROUPS[name] for name in GROUPS if name in item.fixturenames), None):
            item.add_marker(pytest.mark.xdist_group(group))
    # Tests of no group are handed out in this order. The library's take least: with them at the
    # end, no process is left with a minute's work after the others have none.
    items.sort(key=lambda item: UNIT in item.path.parents)


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Empty the folder of a test that passed: all of them would fill a disk.

    The folder itself stays, and so no other test gets one of its name: what is read is remembered
    by its path.
    """
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    passed = call.when == "teardown" and not item.stash[FAILED]
    if passed and (folder := item.funcargs.get("tmp_path")):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)
    return report


@pytest.fixture
def new_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Make a file system of a size such as "64k"; it ends with the test and hides no folder."""
    folder = tmp_path / "disk"
    folder.mkdir()
    keepers = []

    def make(size: str) -> Path:
        # It lies in a mount namespace of its own, which others reach through its process.
        script = f"mount -t tmpfs -o size={size} tmpfs {shlex.quote(str(folder))} && echo up && cat"
        keeper = subprocess.Popen(
            ["sh", "-c", f"exec unshare --mount sh -c {shlex.quote(script)}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        keepers.append(keeper)
        if not keeper.stdout.readline():
            cannot_run(f"a disk to fill, which root can mount: {keeper.stderr.read().strip()}")
        return Path(f"/proc/{keeper.pid}/root{folder}")

    yield make
    for keeper in keepers:
        keeper.communicate()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all processes that test, for what one makes and the others need not."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Let no other process that tests be in such a block."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def once(shared: Path) -> Callable[[str, Callable[[], Any]], Any]:
    """Have one of all processes that test make something; the others read what it came to.

    A call takes what to know it by, and the function that makes it.
    """
    folder = shared / "once"
    folder.mkdir(exist_ok=True)

    def made(name: str, make: Callable[[], Any]) -> Any:
        file = folder / hashlib.sha256(name.encode()).hexdigest()
        with alone(file.with_suffix(".lock")):
            if not file.exists():
                content = pickle.dumps(make())
                file.write_bytes(content)
        return pickle.loads(file.read_bytes())

    return made


@pytest.fixture(scope="session")
def published_figures(shared: Path) -> Path:
    """The figures of all published tables, in a folder that no test may spoil."""
    folder = shared / "published"
    with alone(shared / "published.lock"):
        if not folder.exists():
            draw_published(shared / "drawing")
            (shared / "drawing").rename(folder)
    return folder


@pytest.fixture(scope="session")
def built_environments(
    tmp_path_factory: pytest.TempPathFactory, shared: Path
) -> Callable[..., Path]:
    """Have the workflow build systems' environments; returns where they lie, now and next time."""
    folder = ROOT / ".envs"
    folder.mkdir(exist_ok=True)
    builder = new_benchmark(tmp_path_factory.mktemp("environments") / "benchmark", folder)

    def build(*systems: str) -> Path:
        builds = (LockBuild(load_systems()[name], "cpu") for name in systems)
        targets = {str(build.folder / RECORD): shared / build.folder.name for build in builds}

        def missing() -> list[str]:
            return sorted(one for one, mark in targets.items() if not mark.exists())

        # Who needs nothing more does not wait for what another process builds.
        if missing():
            with alone(folder / "tests.lock"):
                if left := missing():
                    answer = builder.snakemake(*left, timeout=2400)
                    assert answer.returncode == 0, answer.stdout
                    for one in left:
                        targets[one].touch()
        return folder

    return build


@pytest.fixture(scope="session")
def environments(built_environments: Callable[..., Path]) -> Path:
    """The systems' environments, of which PyTorch's is built."""
    return built_environments("pytorch")


@pytest.fixture(scope="session")
def every_environment(built_environments: Callable[..., Path]) -> Path:
    """The systems' environments, all built."""
    return built_environments(*load_systems())


# Resource limits and control groups of the machines that run tests are not Podman's to set.
PODMAN = '[containers]\ndefault_ulimits = []\n[engine]\nruntime = "runc"\n'


@pytest.fixture(scope="module")
def podman_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What Podman needs to run on the machines of tests."""
    if shutil.which("podman") is None:
        cannot_run("podman: apt-get install podman runc")
    file = tmp_path_factory.mktemp("podman") / "podman.conf"
    file.write_text(PODMAN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_CONF", str(file))
        yield


@pytest.fixture(scope="session")
def plain_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A container image, in a folder, with a torch of another version than the lock's."""
    folder = tmp_path_factory.mktemp("image") / "torch"
    yield make_image(folder, [f"torch=={TORCH}", "numpy"])
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def engines() -> None:
    """The container engines."""
    missing = [program for program in ENGINES.values() if shutil.which(program) is None]
    if missing:
        cannot_run(f"{', '.join(missing)}: apt-get install {' '.join(ENGINES)} runc")


@pytest.fixture(scope="session")
def torch_image(engines: None, plain_image: Path) -> Path:
    """The image, where all engines can run it."""
    return plain_image


@pytest.fixture
def benchmark(tmp_path: Path, environments: Path) -> Benchmark:
    """A small benchmark of which nothing has been built yet."""
    return new_benchmark(tmp_path / "benchmark", environments)


@pytest.fixture(scope="session")
def begun(environments: Path, shared: Path) -> Path:
    """A benchmark with what takes long and is the same in all: published figures, records."""
    folder = shared / "begun"
    with alone(shared / "begun.lock"):
        if not folder.exists():
            first = new_benchmark(shared / "beginning", environments)
            answer = first.snakemake("figures/published", "data/embedded/tfrecord/manifest.json")
            assert answer.returncode == 0, answer.stdout
            first.folder.rename(folder)
    return folder


@pytest.fixture
def begun_benchmark(benchmark: Benchmark, begun: Path) -> Benchmark:
    """A small benchmark that has its published figures and its records, but no run."""
    benchmark.take_over(begun)
    return benchmark


@pytest.fixture(scope="session")
def _finished(
    tmp_path_factory: pytest.TempPathFactory, environments: Path, begun: Path
) -> Benchmark:
    finished = new_benchmark(tmp_path_factory.mktemp("finished") / "benchmark", environments)
    finished.take_over(begun)
    answer = finished.snakemake()
    assert answer.returncode == 0, answer.stdout
    return finished


@pytest.fixture
def finished_benchmark(tmp_path: Path, _finished: Benchmark) -> Benchmark:
    """A copy of a small benchmark that has run to its end."""
    folder = tmp_path / "benchmark"
    shutil.copytree(_finished.folder, folder, symlinks=True)
    return Benchmark(folder)
