"""Images: what cannot be meant or lacks what it takes is refused, and what is in one is known."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from reperf.builds import RECORD, ImageBuild, digest_of, fingerprint_of, read_environment
from reperf.builds.image_build import _LOOK, build_image
from reperf.config import Container, load_report
from reperf.machine import check_containers, resolve
from reperf.systems import load_systems

from tests.helpers.refusal import refused_in_one_line
from tests.helpers.small_benchmark import SMALL
from tests.helpers.small_image import link_image
from tests.helpers.written_files import write

SUITE = SMALL["suites"][0] | {"input": "synthetic"}
PACKAGES = "usr/lib/python3/dist-packages"


@pytest.fixture
def image(tmp_path: Path, small_image: Path, podman_settings: None, monkeypatch) -> Path:
    """An image with Python and no framework, beside an empty working folder."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return link_image(small_image, tmp_path / "image")


def build_of(image: object, engine: str = "podman", **more: object) -> ImageBuild:
    container = Container(engine=engine, image=str(image), **more)
    return ImageBuild(load_systems()["pytorch"], container)


def without(pattern: str) -> Callable[[Path], None]:
    return lambda image: [path.unlink() for path in image.glob(f"usr/bin/{pattern}")]


def with_a_torch_that_fails(image: Path) -> None:
    write(image / PACKAGES / "torch/__init__.py", "import a_part_that_is_missing\n")


@pytest.mark.image
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (without("python3*"), "has no Python: neither python3 nor python is in it"),
        (without("sh"), "does not start with podman: "),
        (with_a_torch_that_fails, "its torch cannot be imported: ModuleNotFoundError: No module"),
    ],
    ids=["no Python", "no shell", "torch fails"],
)
def test_an_image_that_lacks_what_it_takes_is_refused(image: Path, change, complaint: str):
    change(image)
    with refused_in_one_line(f"{image}: {complaint}"):
        build_image(build_of(image))
    assert not (build_of(image).folder / RECORD).exists()


@pytest.mark.image
def test_a_framework_that_needs_a_driver_is_there_even_if_it_cannot_tell_its_version(image: Path):
    # As in an image of MXNet that was installed under a name that we do not know.
    files = dict.fromkeys(("cv2/__init__.py", "simplejpeg/__init__.py"), "")
    files["torch/__init__.py"] = "import ctypes\nctypes.CDLL('libcuda.so.1')\n"
    write(image / PACKAGES, files | {"torch/version.py": "cuda = '12.4'\n"})
    build_image(build_of(image))
    built = read_environment(build_of(image))
    assert (built.framework, built.cuda) == (None, "12.4")
    # The same image, and options that the engine has not got.
    with refused_in_one_line(f"{image}: does not start with podman: "):
        build_image(build_of(image, options=("--no-such",)))


def at(image: str) -> dict:
    return {"images": {"pytorch": image}}


NODE = {"nodes": 1, "devices_per_node": 2}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (at("/no/torch.sif"), "images.pytorch: got '/no/torch.sif', and there is no such"),
        (at("nowhere/torch.sif"), "images.pytorch: got 'nowhere/torch.sif', and there is no such"),
        (at("No Image"), "images.pytorch: got 'No Image'; allowed: registry/"),
        ({"container": {"engine": "apptainer"}}, "container.engine: apptainer is not here, for"),
        ({"container": {"engine": "pyxis"}}, "container.engine: pyxis is not here, for"),
        ({"container": {"engine": "bubblewrap"}}, "x: container.engine: got 'bubblewrap'; allo"),
        ({"images": {"torch": "/"}}, "x: images.torch: got 'torch'; allowed: "),
        ({"build": "wheel"}, "x: build: got 'wheel'; allowed: 'lock', 'image' or 'environment'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_built(changes, complaint):
    asked = SMALL | {"suites": [SUITE], **at("/")} | changes
    asked.setdefault("container", {"engine": "podman"})
    with refused_in_one_line(complaint):
        check_containers(resolve(load_report(asked, "x")))


def test_a_cluster_may_have_an_engine_that_is_not_here():
    asked = SMALL | {"suites": [SUITE], **at("/"), "device": "cuda"}
    asked |= {"container": {"engine": "pyxis"}, "cluster": NODE}
    check_containers(resolve(load_report(asked)))


NAMED = at("docker.io/me/torch:1")
LOCKED = {"systems": [{"system": "pytorch", "build": "lock"}]}


@pytest.mark.parametrize(
    ("asked", "suite", "chosen"),
    [
        ({}, {}, "lock"),
        ({"build": "image"}, {}, "image"),
        (NAMED, {}, "image"),
        (NAMED | {"build": "lock"}, {}, "lock"),
        ({"build": "image"}, LOCKED, "lock"),
        (NAMED, LOCKED, "lock"),
    ],
)
def test_the_report_and_its_entries_choose_between_lock_and_image(asked, suite, chosen):
    report = resolve(load_report(SMALL | {"suites": [SUITE | suite]} | asked))
    runs = report.runs(report.suites[0])
    assert {"image" if run.container else "lock" for run in runs} == {chosen}


def test_a_folder_is_known_by_its_files_alone(tmp_path: Path):
    folder = tmp_path / "image"
    program = write(folder / "usr/bin/program", "1")
    os.utime(program, (0, 0))  # long ago: clocks of file systems are coarse
    (folder / "bin").symlink_to("usr/bin")
    digest, print_ = digest_of(folder), fingerprint_of(folder)
    # What engines and programs leave behind: mount points and bytecode.
    (folder / "work/results").mkdir(parents=True)
    write(folder / "usr/__pycache__/a.pyc", "x")
    assert (digest_of(folder), fingerprint_of(folder)) == (digest, print_)
    program.write_text("2")
    changed = digest_of(folder)
    assert fingerprint_of(folder) != print_
    (folder / "bin").unlink()
    (folder / "bin").symlink_to("usr")
    assert len({digest, changed, digest_of(folder)}) == 3


def test_a_package_inside_another_is_missed_without_running_the_other(tmp_path: Path):
    places = ("one/nvidia/cudnn/x", "two/nvidia/dali/x", "three/other.py")
    write(tmp_path, dict.fromkeys(places, "raise SystemExit('was run')"))
    asked = ["nvidia.dali", "nvidia.cudnn", "nvidia.no", "other", "other.inside", "no.such.thing"]
    path = os.pathsep.join(str(tmp_path / name) for name in ("one", "two", "three"))
    for shown, missing in ((path, [2, 4, 5]), ("", range(6))):
        said = subprocess.check_output(
            [sys.executable, "-c", _LOOK, *asked], env={"PYTHONPATH": shown}, text=True
        )
        assert said.split() == [asked[place] for place in missing]
