"""An archive of a small suite for each test, made once."""

import shutil
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest
from reperf.config import Report, load_report
from reperf.drawing import figures
from reperf.layout import FIGURE_KINDS

from tests.unit.archive.suites import SUITE, archive_suite


@pytest.fixture(scope="session")
def draw_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Draws a suite's figures as draw_suite does, and those of equal tables only once.

    That they are the same each time is the promise of one test, which draws them anew.
    """
    draw, drawn = figures.draw_suite, {}

    def draw_suite(measurements: str, summary: str, stem: str, kinds: tuple = FIGURE_KINDS) -> None:
        tables = measurements, summary
        known = Path(stem).name, kinds, *(Path(table).read_bytes() for table in tables)
        if known not in drawn:
            drawn[known] = tmp_path_factory.mktemp("drawn")
            draw(*tables, drawn[known] / Path(stem).name, kinds)
        shutil.copytree(drawn[known], Path(stem).parent, dirs_exist_ok=True)

    return draw_suite


@pytest.fixture
def drawn_once(monkeypatch: pytest.MonkeyPatch, draw_once: Callable[..., None]) -> None:
    monkeypatch.setattr(figures, "draw_suite", draw_once)


@pytest.fixture(scope="session")
def report() -> Report:
    return load_report(SUITE).alone("resnet50")


@pytest.fixture(scope="session")
def _archived(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    working, path = tmp_path_factory.mktemp("working"), tmp_path_factory.mktemp("archive")
    with chdir(working):
        archive_suite(report, path / "resnet50.zip")
    shutil.rmtree(working)
    return path / "resnet50.zip"


@pytest.fixture
def archived(_archived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive of a suite in an otherwise empty folder, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copy(_archived, tmp_path))
