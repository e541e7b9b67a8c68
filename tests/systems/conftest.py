"""What the systems' tests share: environments, trainers, real images and their records."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import simplejpeg
import skimage.data
from PIL import Image
from reperf.data.images.convert_images import convert
from reperf.data.kinds import KINDS
from reperf.systems import load_systems

from tests.systems.loaders import COLOURS
from tests.systems.trainer import Trainer

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.framework)


@pytest.fixture(scope="session")
def trainer_of(
    built_environments: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Trainer]:
    """The systems' trainers in their environments, each made once: a call with a name gives it."""
    made: dict[str, Trainer] = {}

    def trainer(name: str) -> Trainer:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            (folder / ".envs").symlink_to(built_environments(name))
            # What lies in a work folder is no module of the standard library.
            (folder / "timeit.py").write_text("raise SystemExit('not of the standard library')")
            made[name] = Trainer(load_systems()[name], folder)
        return made[name]

    return trainer


@pytest.fixture(scope="session")
def proofs(trainer_of, once):
    """Proofs, each trained once: record and log by system, workload, more flags and changes.

    Two ranks train, each on samples of its own, unless the changes say otherwise. Every system is
    held to PyTorch's, whichever process tests it.
    """
    done = {}

    def run(system, workload, *more_flags, **changes):
        asked = (system, workload, more_flags, repr(changes))
        if asked not in done:
            done[asked] = once(
                f"proof {asked}",
                lambda: trainer_of(system).train_well(
                    workload=workload, more_flags=("--proof", *more_flags), **changes
                ),
            )
        return done[asked]

    return run


@pytest.fixture(scope="session")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The embedded set of a kind as record parts: in a format, and by settings of the kind."""
    done: dict[str, Path] = {}

    def of(kind: str, form: str, **settings: object) -> Path:
        asked = repr((kind, form, settings))
        if asked not in done:
            folder, known = tmp_path_factory.mktemp(kind), KINDS[kind]
            import_module(known.modules[0]).make(folder / "own")
            asked_for = known.settings(
                **{kind: str(folder / "own"), "parts": 2, "seed": 1} | settings
            )
            known.converter.convert(asked_for, folder / form, form, workers=1)
            done[asked] = folder / form
        return done[asked]

    return of


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
def slow_records(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Eight images as two record parts, in the format asked for, that take long to decode.

    They are large, noisy and progressive, but of few bytes: TensorFlow keeps a thousand records, to
    shuffle them.
    """
    folder = tmp_path_factory.mktemp("slow")
    random = np.random.default_rng(1)
    for number in range(8):
        noise = Image.fromarray(random.integers(0, 256, (4500, 6000, 3), np.uint8))
        image = folder / f"train/n0000000{number % 2}/{number}.JPEG"
        image.parent.mkdir(parents=True, exist_ok=True)
        noise.save(image, quality=3, progressive=True)
    return _converted(folder, tmp_path_factory)


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
