"""An archive of a small suite for each test, made once."""

import shutil
from contextlib import chdir
from pathlib import Path

import pytest
from reperf.config import Report
from reperf.drawing import figures
from reperf.layout import FIGURE_KINDS

from tests.unit.archive.suites import archive_suite, report_of

DRAWN: dict[tuple, Path] = {}


@pytest.fixture
def drawn_once(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the figures of equal tables drawn once; one test draws them anew, and compares."""
    draw = figures.draw_suite

    def draw_suite(measurements: str, summary: str, stem: str, kinds: tuple = FIGURE_KINDS) -> None:
        tables = measurements, summary
        known = Path(stem).name, kinds, *(Path(table).read_bytes() for table in tables)
        if known not in DRAWN:
            DRAWN[known] = tmp_path_factory.mktemp("drawn")
            draw(*tables, DRAWN[known] / Path(stem).name, kinds)
        shutil.copytree(DRAWN[known], Path(stem).parent, dirs_exist_ok=True)

    monkeypatch.setattr(figures, "draw_suite", draw_suite)


@pytest.fixture(scope="session")
def report() -> Report:
    return report_of()


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
