"""Images: what cannot be meant or lacks what it takes is refused, and what is in one is known."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from reperf.builds import RECORD, ImageBuild, digest_of, fingerprint_of, read_environment
from reperf.builds.engines import engine_called
from reperf.builds.image_build import _LOOK, build_image
from reperf.config import Container, load_report
from reperf.machine import check_containers, resolve
from reperf.systems import load_systems

from tests.helpers.refusal import refused_in_one_line
from tests.helpers.small_benchmark import SMALL
from tests.helpers.small_image import link_image

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
    (image / PACKAGES / "torch").mkdir()
    (image / PACKAGES / "torch/__init__.py").write_text("import a_part_that_is_missing\n")


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
    packages = image / PACKAGES
    for name in ("torch", "cv2", "simplejpeg"):
        (packages / name).mkdir()
    (packages / "torch/__init__.py").write_text("import ctypes\nctypes.CDLL('libcuda.so.1')\n")
    (packages / "torch/version.py").write_text("cuda = '12.4'\n")
    build_image(build_of(image))
    built = read_environment(build_of(image))
    assert (built.framework, built.cuda) == (None, "12.4")
    # The same image, and options that the engine has not got.
    with refused_in_one_line(f"{image}: does not start with podman: "):
        build_image(build_of(image, options=("--no-such",)))


@pytest.mark.image
def test_podman_takes_an_image_by_its_name_and_runs_no_entry_point(image: Path):
    name = f"localhost/reperf-test-{os.getpid()}"
    (image / "entry.sh").write_text("#!/bin/sh\necho a banner\nexit 1\n")
    (image / "entry.sh").chmod(0o755)
    with tarfile.open(image.parent / "image.tar", "w") as packed:
        packed.add(image, ".")
    change = ["--change", 'ENTRYPOINT ["/entry.sh"]', str(image.parent / "image.tar"), name]
    subprocess.run(["podman", "import", "--quiet", *change], check=True, capture_output=True)
    try:
        with refused_in_one_line(f"{name}: has no torch: ModuleNotFoundError"):
            build_image(build_of(name))
        local, digest = engine_called("podman").pull(name, build_of(name).folder)
        assert local == f"{name}@{digest}"
    finally:
        subprocess.run(["podman", "rmi", "--force", name], check=True, capture_output=True)


def at(image: str) -> dict:
    return {"images": {"pytorch": image}}


NODE = {"nodes": 1, "devices_per_node": 2}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (
            at("/nowhere/torch.sif"),
            "images.pytorch: got '/nowhere/torch.sif', and there is no such",
        ),
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
    (folder / "usr/bin").mkdir(parents=True)
    (folder / "usr/bin/program").write_text("1")
    os.utime(folder / "usr/bin/program", (0, 0))  # long ago: clocks of file systems are coarse
    (folder / "bin").symlink_to("usr/bin")
    digest, print_ = digest_of(folder), fingerprint_of(folder)
    # What engines and programs leave behind: mount points and bytecode.
    (folder / "work/results").mkdir(parents=True)
    (folder / "usr/__pycache__").mkdir()
    (folder / "usr/__pycache__/a.pyc").write_text("x")
    assert (digest_of(folder), fingerprint_of(folder)) == (digest, print_)
    (folder / "usr/bin/program").write_text("2")
    changed = digest_of(folder)
    assert fingerprint_of(folder) != print_
    (folder / "bin").unlink()
    (folder / "bin").symlink_to("usr")
    assert len({digest, changed, digest_of(folder)}) == 3


def test_a_package_inside_another_is_missed_without_running_the_other(tmp_path: Path):
    for name in ("one/nvidia/cudnn", "two/nvidia/dali", "three"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "three/other.py").write_text("raise SystemExit('was run')")
    asked = ["nvidia.dali", "nvidia.cudnn", "nvidia.no", "other", "other.inside", "no.such.thing"]
    path = os.pathsep.join(str(tmp_path / name) for name in ("one", "two", "three"))
    for shown, missing in ((path, [2, 4, 5]), ("", range(6))):
        said = subprocess.check_output(
            [sys.executable, "-c", _LOOK, *asked], env={"PYTHONPATH": shown}, text=True
        )
        assert said.split() == [asked[place] for place in missing]
