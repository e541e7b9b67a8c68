"""What the systems' tests share: environments, trainers, real images and their records."""

import io
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import simplejpeg
import skimage.data
from PIL import Image
from reperf.data.images import Images
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
    """The systems' trainers in their environments: a call with a name gives one."""

    @cache
    def trainer(name: str) -> Trainer:
        folder = tmp_path_factory.mktemp(name)
        (folder / ".envs").symlink_to(built_environments(name))
        # What lies in a work folder is no module of the standard library, which frameworks import.
        (folder / "timeit.py").write_text("raise SystemExit('not of the standard library')")
        return Trainer(load_systems()[name], folder)

    return trainer


@pytest.fixture(autouse=True)
def _environment(request: pytest.FixtureRequest, trainer_of: Callable[[str], Trainer]) -> None:
    """Built before the time limit of a test begins: to compile Horovod takes minutes."""
    if "system" in request.fixturenames:
        trainer_of(request.getfixturevalue("system"))


@pytest.fixture(scope="session")
def proofs(trainer_of, once):
    """Proofs, each trained once: record and log by system, workload, more flags and changes.

    Two ranks train, each on samples of its own, unless the changes say otherwise. Every system is
    held to PyTorch's, whichever process tests it.
    """

    def run(system, workload, *more_flags, **changes):
        def trained():
            flags = ("--proof", *more_flags)
            return trainer_of(system).train_well(workload=workload, more_flags=flags, **changes)

        return once(f"proof {(system, workload, more_flags, repr(changes))}", trained)

    return run


@pytest.fixture(scope="session")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The embedded set of a kind as record parts: in a format, and by settings of the kind."""
    done: dict[str, Path] = {}

    def of(kind: str, form: str, **settings: object) -> Path:
        asked = repr((kind, form, settings))
        if asked not in done:
            folder, known = tmp_path_factory.mktemp(kind), KINDS[kind]
            data = known(**{"kind": kind, kind: folder / "own", "parts": 2} | settings)
            data.embed()
            data.convert(folder / form, form, workers=1)
            done[asked] = folder / form
        return done[asked]

    return of


Records = Callable[[str], Path]
"""Images as two record parts, in the format asked for."""


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve photographs of three classes, of different sizes, in ImageNet's layout."""
    folder = tmp_path_factory.mktemp("images")
    photographs = [skimage.data.astronaut(), skimage.data.chelsea(), skimage.data.coffee()]
    for label, photograph in enumerate(photographs):
        for number in range(4):
            view = photograph[20 * number :, 30 * number :].copy()
            _put(folder, label, number, simplejpeg.encode_jpeg(view, quality=90 + number))
    return folder


@pytest.fixture(scope="session")
def records(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Records:
    """The photographs."""
    return _converted(images, tmp_path_factory)


@pytest.fixture(scope="session")
def slow_records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """Eight images that take long to decode.

    They are large, noisy and progressive, but of few bytes: TensorFlow keeps a thousand records, to
    shuffle them.
    """
    folder = tmp_path_factory.mktemp("slow")
    random = np.random.default_rng(1)
    for number in range(8):
        jpeg, noise = io.BytesIO(), random.integers(0, 256, (4500, 6000, 3), np.uint8)
        Image.fromarray(noise).save(jpeg, "JPEG", quality=3, progressive=True)
        _put(folder, number % 2, number, jpeg.getvalue())
    return _converted(folder, tmp_path_factory)


@pytest.fixture(scope="session")
def coloured_records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """Sixteen classes of one image each.

    Each image has one colour, so that whatever part of it is cut out says which image it was.
    """
    folder = tmp_path_factory.mktemp("coloured")
    for label, colour in enumerate(COLOURS):
        image = np.full((120 + label, 160 - label, 3), colour, np.uint8)
        _put(folder, label, 0, simplejpeg.encode_jpeg(image, quality=95))
    return _converted(folder, tmp_path_factory)


def _put(folder: Path, label: int, number: int, jpeg: bytes) -> None:
    image = folder / f"train/n000000{label:02}/{number}.JPEG"
    image.parent.mkdir(parents=True, exist_ok=True)
    image.write_bytes(jpeg)


def _converted(images: Path, temporary: pytest.TempPathFactory) -> Records:
    @cache
    def records(form: str) -> Path:
        folder = temporary.mktemp(form)
        Images(images=images, parts=2).convert(folder, form, workers=1)
        return folder

    return records
