"""The image without a framework, which several tests share."""

from pathlib import Path

import pytest

from tests.helpers.small_image import make_image


@pytest.fixture(scope="session")
def small_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image with Python and no framework; who changes it takes link_image of it."""
    return make_image(tmp_path_factory.mktemp("small") / "image")
