"""What holds for tests of all lanes; fixtures lie in tests/fixtures."""

import os
import shutil
import signal
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest

pytest_plugins = [
    "tests.plugins.lanes",
    "tests.plugins.bar",
    "tests.fixtures.sharing",
    "tests.fixtures.benchmarks",
    "tests.fixtures.browsers",
    "tests.fixtures.environments",
    "tests.fixtures.containers",
    "tests.fixtures.disks",
]


def pytest_configure() -> None:
    # Started in a script's background, it would ignore Ctrl-C, and so would all that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A Python compiles what it imports, once; most of what is installed, no test imports.
    os.environ["UV_COMPILE_BYTECODE"] = "0"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Runs of several tests would keep to the same cores, each to as many as it has ranks.
    os.environ["CORES"] = "shared"


@cache
def _hypothesis_profile() -> None:
    """No test asserts a time; and but for `make test-all`, the examples are few and the same."""
    from hypothesis import settings  # noqa: PLC0415 - few files need what takes so long to import

    chance = bool(os.environ.get("TRUE_CHANCE"))
    examples = {"derandomize": not chance, "max_examples": 400 if chance else 40}
    settings.register_profile("lane", deadline=None, database=None, **examples)
    settings.load_profile("lane")


def pytest_pycollect_makemodule(module_path: Path) -> None:
    if b"from hypothesis import" in module_path.read_bytes():
        _hypothesis_profile()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a whole text by its beginning."""
    return f"{val[:40]!r}.." if isinstance(val, str | bytes) and len(val) > 60 else None


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
