"""The embedded text and its vocabulary, which several tests share."""

from pathlib import Path

import pytest
from reperf.data.text.corpus import Corpus
from reperf.data.text.embedded_text import make as make_text
from reperf.data.text.vocabulary import train_vocabulary


@pytest.fixture(scope="session")
def embedded_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded text."""
    path = tmp_path_factory.mktemp("text") / "text.txt"
    make_text(path)
    return path


@pytest.fixture(scope="session")
def embedded_vocabulary(embedded_text: Path) -> list[str]:
    """The vocabulary that is trained on it."""
    return train_vocabulary(Corpus(embedded_text), size=30522, lowercase=True)
