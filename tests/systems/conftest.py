"""What the systems' tests share: environments, real images and their records."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import simplejpeg
import skimage.data
from loaders import COLOURS
from reperf.data.convert import convert
from reperf.systems import load_systems
from trainer import Trainer


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "system" in metafunc.fixturenames:
        every = metafunc.config.getoption("systems") == "all"
        systems = list(load_systems()) if every else ["pytorch"]
        # What a system has trained once serves several tests.
        together = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in systems]
        metafunc.parametrize("system", together, scope="session")


@pytest.fixture(scope="session")
def trainer_of(built_environments: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory):
    """A system's trainer in its environment."""

    def trainer(name: str) -> Trainer:
        folder = tmp_path_factory.mktemp(name)
        (folder / ".envs").symlink_to(built_environments(name))
        return Trainer(load_systems()[name], folder)

    return trainer


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve photographs of three classes, of different sizes, in ImageNet's layout."""
    folder = tmp_path_factory.mktemp("images")
    photographs = [skimage.data.astronaut(), skimage.data.chelsea(), skimage.data.coffee()]
    for label, photograph in enumerate(photographs):
        synset = folder / f"train/n0000000{label}"
        synset.mkdir(parents=True)
        for number in range(4):
            view = photograph[20 * number :, 30 * number :].copy()
            jpeg = simplejpeg.encode_jpeg(view, quality=90 + number)
            (synset / f"n0000000{label}_{number}.JPEG").write_bytes(jpeg)
    return folder


@pytest.fixture(scope="session")
def records(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The photographs as two record parts, in the format asked for."""
    return _converted(images, tmp_path_factory)


@pytest.fixture(scope="session")
def coloured_records(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Sixteen classes of one image each as two record parts, in the format asked for.

    Each image has one colour, so that whatever part of it is cut out says which image it was.
    """
    folder = tmp_path_factory.mktemp("coloured")
    for label, colour in enumerate(COLOURS):
        synset = folder / f"train/n000000{label:02}"
        synset.mkdir(parents=True)
        image = np.full((120 + label, 160 - label, 3), colour, np.uint8)
        (synset / "image.JPEG").write_bytes(simplejpeg.encode_jpeg(image, quality=95))
    return _converted(folder, tmp_path_factory)


def _converted(images: Path, temporary: pytest.TempPathFactory) -> Callable[[str], Path]:
    done: dict[str, Path] = {}

    def records(form: str) -> Path:
        if form not in done:
            done[form] = temporary.mktemp(form)
            convert(images, done[form], form, parts=2, workers=1, seed=1)
        return done[form]

    return records
