"""What the systems' tests share: environments, real images and their records."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import simplejpeg
import skimage.data
from PIL import Image
from reperf.data.clicks.convert import convert as convert_clicks
from reperf.data.clicks.embedded import make as make_clicks
from reperf.data.clicks.manifest import ClickSettings
from reperf.data.images.convert_images import convert
from reperf.systems import System, load_systems

from tests.systems.loaders import COLOURS
from tests.systems.trainer import Trainer, recipe_of, trained_by

# What a test of a system asks for besides -> of which workloads that is.
ASKED = {
    "workload": lambda workload: True,
    "dropping": lambda workload: hasattr(recipe_of(workload), "DROPOUT"),
    "scaling": lambda workload: workload in ("resnet50", "bert-base"),  # SGD, and AdamW
    "clipping": lambda workload: workload == "bert-base",
}
# A marker of a test -> what systems may have in common, of which the test needs one.
ALIKE = {
    "each_launcher": lambda system: system.launch,
    "each_backend": lambda system: (system.framework, system.backend),
}


def code_of(system: System, workload: str) -> tuple[str, ...]:
    """What trains a workload on synthetic batches; of systems with the same, one is enough."""
    return (system.framework, system.backend, workload, system.workloads[workload].model)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of a `system`, of what it trains (`workload`), or of a part of that (ASKED)."""
    if "system" not in metafunc.fixturenames:
        return
    every = metafunc.config.getoption("systems") == "all"
    systems = {
        name: one
        for name, one in load_systems().items()
        # Those with servers have tests of their own.
        if (every and trained_by(one) and not one.serve) or name == "pytorch"
    }
    for marker, alike in ALIKE.items():
        if metafunc.definition.get_closest_marker(marker):
            # Of those that are alike, the last one: pytorch, and not ngc-pytorch.
            systems = dict({alike(one): (name, one) for name, one in systems.items()}.values())
    # On CPUs, the models that ngc-pytorch has of pytorch are trained by the same code.
    last = {code_of(one, of): name for name, one in systems.items() for of in trained_by(one)}
    names, cases = ("system",), [(name,) for name in systems]
    for wanted, fits in ASKED.items():
        if wanted in metafunc.fixturenames:
            names = ("system", wanted)
            cases = [
                (name, workload)
                for name, one in systems.items()
                for workload in filter(fits, trained_by(one))
                if last[code_of(one, workload)] == name or workload == trained_by(one)[0]
            ]
    # What a system has trained once serves several tests.
    marked = [pytest.param(*case, marks=pytest.mark.xdist_group(case[0])) for case in cases]
    metafunc.parametrize(names, marked, scope="session")


@pytest.fixture(scope="session")
def trainer_of(built_environments: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory):
    """A system's trainer in its environment."""

    def trainer(name: str) -> Trainer:
        folder = tmp_path_factory.mktemp(name)
        (folder / ".envs").symlink_to(built_environments(name))
        # What lies in a work folder is no module of the standard library, which frameworks import.
        (folder / "timeit.py").write_text("raise SystemExit('not of the standard library')")
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
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded clicks as two record parts."""
    folder = tmp_path_factory.mktemp("clicks")
    make_clicks(folder / "clicks.txt")
    settings = ClickSettings(clicks=str(folder / "clicks.txt"), parts=2, seed=1)
    convert_clicks(settings, folder / "rows", "rows", workers=1)
    return folder / "rows"


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
