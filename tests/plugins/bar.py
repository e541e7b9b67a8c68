"""In which order tests run, and what is shown meanwhile: how far they are, and what is tested.

tests/seconds.json says how long each test function takes, of those that take long; a call with
--write-seconds writes it anew, for the tests that it runs.
"""

import json
import shutil
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "seconds.json"
SHORT = 0.2
"""Seconds of a test function; those that take less are not in the file."""
USUAL = 0.02
"""Seconds of a test of such a function."""
NEW = 5.0
"""Seconds of a test function outside tests/unit that is not in the file: it may be a long one."""
WAITED_FOR = ("finished", "real_finished")
"""Fixtures that are made once for all processes: those that need them wait for that."""
STEP = 0.05
"""Of the whole: how often a call that no terminal shows says how far it is."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-seconds", action="store_true", help="write to tests/seconds.json what tests take"
    )


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # pytest-xdist's order goes by the number of tests
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter and not hasattr(config, "workerinput") and not config.option.collectonly:
        if config.option.verbose < 1:
            config.pluginmanager.register(Bar(reporter), "bar")
        if config.getoption("--write-seconds"):
            config.pluginmanager.register(Stopwatch())


def known_seconds() -> dict[str, float]:
    """Test function -> seconds."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


class Folder(pytest.Dir):
    """Each process of several begins with other files.

    It finds those with which others began compiled, and need not do that once more.
    """

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        inside = sorted(super().collect(), key=lambda one: one.name)
        worker = getattr(self.config, "workerinput", {"workerid": "gw0", "workercount": 1})
        begin = int(worker["workerid"][2:]) * len(inside) // worker["workercount"]
        return inside[begin:] + inside[:begin]


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> Folder | None:
    return None if (path / "__init__.py").exists() else Folder.from_parent(parent, path=path)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what many wait for, then groups, of which a process takes the whole, the longest
    first; beside these what waits for nothing, and last what is short.

    So no process of several is left with a minute's work when the others have none.
    """
    items.sort(key=lambda item: item.path)
    known, tests = known_seconds(), Counter(function_of(item.nodeid) for item in items)
    groups: dict[str, float] = defaultdict(float)
    first = [
        next((item for item in items if fixture in item.fixturenames), None)
        for fixture in WAITED_FOR
    ]

    def group(item: pytest.Item) -> str:
        mark = item.get_closest_marker("xdist_group")
        return mark.args[0] if mark else ""

    def seconds(item: pytest.Item) -> float:
        function = function_of(item.nodeid)
        return known.get(function, 0.0 if "unit" in item.path.parts else NEW)

    for item in items:
        groups[group(item)] += seconds(item) / tests[function_of(item.nodeid)]

    def place(item: pytest.Item) -> tuple[int, float]:
        if item in first:
            return 0, 0.0
        if name := group(item):
            return 1, -groups[name]
        if "unit" in item.path.parts:
            return (2 if seconds(item) > SHORT else 4), -seconds(item)
        return 3, -seconds(item)

    items.sort(key=place)


def function_of(nodeid: str) -> str:
    """The test function of a test: its id without its parameters."""
    return nodeid.partition("[")[0].partition("@")[0]


def promise_of(nodeid: str) -> str:
    """A test's promise in words, after its folder."""
    path, *_, name = function_of(nodeid).split("::")
    return f"{Path(path).parent.name}: {name.removeprefix('test_').replace('_', ' ')}"


class Bar:
    """Takes the place of pytest's dots.

    Args:
        reporter: pytest's own, which still writes what failed, and the summary.
    """

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter, self._terminal = reporter, sys.stdout.isatty()
        self._known = known_seconds()
        self._weights: dict[str, float] = {}
        self._whole, self._done, self._shown = 0.0, 0.0, 0.0
        self._begun = time.monotonic()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._collected([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids: list[str]) -> None:
        self._collected(ids)

    def _collected(self, ids: list[str]) -> None:
        if self._whole or not ids:
            return
        functions = defaultdict(list)
        for one in ids:
            functions[function_of(one)].append(one)
        for function, tests in functions.items():
            each = self._known.get(function, USUAL * len(tests)) / len(tests)
            self._weights.update(dict.fromkeys(tests, each))
        self._whole = sum(self._weights.values())

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Count it as pytest does, without its letter."""
        if hasattr(report, "wasxfail"):
            return None
        if report.when == "call" or report.skipped:
            return report.outcome, "", ""
        return ("error" if report.failed else ""), "", ""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._show(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = crash.message.partition("\n")[0][:200] if crash else ""
            self._say(f"FAILED {promise_of(report.nodeid)} ({report.nodeid[:200]}) {why}", red=True)
        if report.when == "teardown":
            self._done += self._weights.get(report.nodeid, 0.0)

    def _show(self, nodeid: str) -> None:
        part = self._done / self._whole if self._whole else 0.0
        seconds = round(time.monotonic() - self._begun)
        line = f"{part:4.0%} {seconds // 60:3}:{seconds % 60:02}  {promise_of(nodeid)}"
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            done = "\u2588" * round(20 * part)
            self._reporter.rewrite(f"{done:\u2591<20} {line}"[:width].ljust(width))
        elif part >= self._shown + STEP:
            self._shown = part
            self._say(line)

    def _say(self, line: str, red: bool = False) -> None:
        self._reporter.ensure_newline()
        self._reporter.write_line(line, red=red)


class Stopwatch:
    """Writes tests/seconds.json."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[function_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        known = known_seconds()
        known = {one: seconds for one, seconds in known.items() if one not in self._seconds}
        known |= {one: round(took, 1) for one, took in self._seconds.items() if took >= SHORT}
        FILE.write_text(json.dumps(dict(sorted(known.items())), indent=0) + "\n")
