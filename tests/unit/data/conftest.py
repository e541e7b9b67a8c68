"""Sets that several tests share: none may change them."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from reperf.data.kinds import KINDS
from reperf.data.text.corpus import Corpus
from reperf.data.text.wordpiece import train_vocabulary

from tests.helpers.written_files import write
from tests.unit.data.sets import OWN, OWN_KEYS, convert, small


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path]]:
    """Make and convert a kind's set as the workflow does; it and its records, by paths."""

    @cache
    def made(kind: str) -> tuple[Path, Path]:
        data, name = small(kind), KINDS[kind].formats[0]
        work = tmp_path_factory.mktemp(kind)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(work)  # an embedded set is known by its path from the work folder
            data.of_kind.embed()
            data.of_kind.convert(Path("data/small", name), name, workers=data.workers)
        return work / data.of_kind.source, work / "data/small" / name

    return made


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A small set of the user's own, of a kind."""
    return cache(lambda kind: write(tmp_path_factory.mktemp("own") / kind, OWN[kind]))


@pytest.fixture
def data(kind: str, own):
    """The same, as a configuration has it."""
    return small(kind, own(kind), **OWN_KEYS.get(kind, {}))


@pytest.fixture(scope="session")
def converted(own, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The same, converted by one worker to a format of its kind, or the first."""

    @cache
    def made(kind: str, name: str = "") -> Path:
        folder = tmp_path_factory.mktemp("converted") / (name or KINDS[kind].formats[0])
        convert(small(kind, own(kind), **OWN_KEYS.get(kind, {})), folder, name)
        return folder

    return made


@pytest.fixture
def copied(kind: str, converted, tmp_path: Path) -> Path:
    """A copy of it, which a test may change."""
    return shutil.copytree(converted(kind), tmp_path / "small" / converted(kind).name)


@pytest.fixture(scope="session")
def embedded_text(embedded) -> Path:
    """The embedded text."""
    return embedded("text")[0]


@pytest.fixture(scope="session")
def embedded_vocabulary(embedded_text: Path) -> list[str]:
    """The vocabulary that is trained on it."""
    return train_vocabulary(Corpus(embedded_text), size=30522, lowercase=True)
