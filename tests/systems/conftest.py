"""What the systems' tests share: environments, real images and their records."""

from pathlib import Path

import pytest
import simplejpeg
import skimage.data
from reperf.data.convert import convert
from reperf.environments import build, is_current
from reperf.systems import load_systems
from trainer import Trainer


@pytest.fixture(scope="session")
def trainer_of(environments: Path):
    """A system's trainer, its environment built first where it is not up to date."""

    def trainer(name: str) -> Trainer:
        system = load_systems()[name]
        folder = environments / system.environment.name
        if not is_current(system, folder):
            build(system, folder)
        return Trainer(name, folder)

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
def tfrecord(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The images as two TFRecord parts."""
    folder = tmp_path_factory.mktemp("tfrecord")
    convert(images, folder, "tfrecord", parts=2, workers=1, seed=1)
    return folder
