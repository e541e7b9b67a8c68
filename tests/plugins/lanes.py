"""The lanes: which tests a call leaves out, and what it says of them at its end.

A test's lane is a marker, and pyproject.toml says what each is for: `-m` chooses. What has no such
marker is in every lane.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

SECONDS = {"weekly": 600, "long": 300, "framework": 600, "cluster": 600, "image": 600}
"""Marker -> how long a test of it may take; pyproject.toml has what others may."""
FOLDERS = {"tests/systems": "framework", "tests/slurm": "cluster"}
"""Folder of tests -> the lane of all that is in it."""
LEFT_OUT = pytest.StashKey[Counter[str]]()


def lanes(config: pytest.Config) -> dict[str, str]:
    """Marker -> what it says in pyproject.toml, the lane that runs latest first."""
    lines = (line.partition(": ") for line in config.getini("markers"))
    known = {name: about for name, _, about in lines}
    return {name: known[name] for name in ("weekly", *SECONDS, "browser") if name in known}


@pytest.hookimpl(trylast=True)  # conftest.py of a folder may mark all of it
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        limits = [limit for lane, limit in SECONDS.items() if item.get_closest_marker(lane)]
        if limits and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(max(limits)))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import the tests of a folder if `-m` leaves out its lane: that takes seconds."""
    lane = FOLDERS.get("/".join(collection_path.parts[-2:]))
    left_out = re.fullmatch(r"not \(?(\w+(?: or \w+)*)\)?", config.option.markexpr)
    if not (lane and left_out and lane in left_out[1].split(" or ")):
        return None
    files = collection_path.glob("test_*.py")
    functions = sum(file.read_text().count("\ndef test_") for file in files)
    config.stash.setdefault(LEFT_OUT, Counter())[lane] += functions
    return True


def pytest_deselected(items: Iterable[pytest.Item]) -> None:
    for item in items:
        counts = item.config.stash.setdefault(LEFT_OUT, Counter())
        lane = next(filter(item.get_closest_marker, lanes(item.config)), None)
        if lane:
            counts[lane] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell pytest-xdist's controller, if there is one, what this process has left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash.get(LEFT_OUT, {}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    """Hear it; all processes leave out the same."""
    node.config.stash[LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say what was not tested here, and what tests it."""
    rows = [
        (lane, f"{count} {'test' if count == 1 else 'tests'}", lanes(config)[lane])
        for lane, count in sorted(config.stash.get(LEFT_OUT, {}).items())
    ]
    skipped = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    )
    rows += [("here", f"{count} tests", reason) for reason, count in skipped.items()]
    if rows:
        terminalreporter.section("not tested here")
        for lane, count, about in rows:
            terminalreporter.line(f"{lane:10} {count:>10}  {about}")
        terminalreporter.line("all of it: make test-all")
