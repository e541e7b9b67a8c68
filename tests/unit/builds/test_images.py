"""Images: what cannot be meant or lacks what it takes is refused, and what is in one is known."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from reperf.builds import RECORD, ImageBuild, read_environment
from reperf.builds.digest import digest_of, fingerprint_of
from reperf.builds.engines import engine_called
from reperf.builds.image_build import _LOOK, build_image, check_starts
from reperf.config import Container, load_report
from reperf.errors import ReperfError
from reperf.machine import check_containers, resolve
from reperf.systems import load_systems

from tests.helpers.refusal import cannot_run, refused_in_one_line
from tests.helpers.small_benchmark import SMALL
from tests.helpers.small_image import link_image

SUITE = SMALL["suites"][0] | {"input": "synthetic"}


@pytest.fixture
def image(tmp_path: Path, small_image: Path, monkeypatch) -> Path:
    """An image with Python and no framework, beside an empty working folder."""
    if shutil.which("ch-run") is None:
        cannot_run("ch-run: apt-get install charliecloud")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return link_image(small_image, tmp_path / "image")


def build_of(image: Path) -> ImageBuild:
    return ImageBuild(load_systems()["pytorch"], Container(engine="charliecloud", image=str(image)))


@pytest.mark.parametrize(
    ("without", "complaint"),
    [
        ("python3*", "has no Python: neither python3 nor python is in it"),
        ("", "has no torch: ModuleNotFoundError: No module named 'torch'"),
        ("sh", "does not start with ch-run: ch-run"),
    ],
    ids=["no Python", "no framework", "no shell"],
)
def test_an_image_that_lacks_what_it_takes_is_refused(image: Path, without: str, complaint: str):
    for path in image.glob(f"usr/bin/{without}") if without else ():
        path.unlink()
    with refused_in_one_line(f"{image}: {complaint}"):
        build_image(build_of(image))
    assert not (build_of(image).folder / RECORD).exists()


@pytest.mark.parametrize(
    ("says", "complaint"),
    [
        ("echo 3.6", "is 3.6; allowed: 3.7 or later"),
        ("echo a banner; echo 2.7", "is 2.7; allowed: 3.7 or later"),
        ("echo no Python", "does not say its version: got 'no Python'; allowed: Python 3.7"),
        ("true", "does not say its version: got ''; allowed: Python 3.7"),
    ],
)
def test_a_python_below_3_7_and_what_is_none_are_refused(image: Path, says: str, complaint: str):
    # A real Python 3.6 is not to be had; what the image says of its own decides.
    (image / "usr/bin/python3").unlink()
    script = image / "usr/bin/python3"
    script.write_text(f"#!/bin/sh\n{says}\n")
    script.chmod(0o755)
    with refused_in_one_line(f"{image}: /usr/bin/python3 {complaint}"):
        build_image(build_of(image))


def test_a_framework_that_is_there_and_fails_is_not_called_missing(image: Path):
    package = image / "usr/lib/python3/dist-packages/torch"
    package.mkdir()
    (package / "__init__.py").write_text("import a_part_that_is_missing\n")
    complaint = "its torch cannot be imported: ModuleNotFoundError: No module named 'a_part_that"
    with refused_in_one_line(f"{image}: {complaint}"):
        build_image(build_of(image))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (
            {"images": {"pytorch": "/nowhere/torch.sif"}},
            "images.pytorch: got '/nowhere/torch.sif', and there is no such file or folder;",
        ),
        (
            {"images": {"pytorch": "nowhere/torch.sif"}},
            "images.pytorch: got 'nowhere/torch.sif', and there is no such file",
        ),
        (
            {"images": {"pytorch": "No Image"}},
            "images.pytorch: got 'No Image'; allowed: registry/",
        ),
        ({"container": {"engine": "apptainer"}}, "container.engine: apptainer is not here, for"),
        ({"container": {"engine": "pyxis"}}, "container.engine: pyxis is not here, for"),
        ({"container": {"engine": "enroot"}}, "x: container.engine: got 'enroot'; allowed: 'appt"),
        ({"images": {"torch": "/"}}, "x: images.torch: got 'torch'; allowed: "),
        ({"build": "wheel"}, "x: build: got 'wheel'; allowed: 'lock' or 'image'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_built(changes, complaint):
    asked = SMALL | {"suites": [SUITE], "images": {"pytorch": "/"}} | changes
    asked.setdefault("container", {"engine": "bubblewrap"})
    with refused_in_one_line(complaint):
        check_containers(resolve(load_report(asked, "x")))


def test_a_cluster_may_have_an_engine_that_is_not_here():
    asked = SMALL | {"suites": [SUITE], "images": {"pytorch": "/"}, "device": "cuda"}
    asked |= {"container": {"engine": "pyxis"}, "cluster": {"nodes": 1, "devices_per_node": 2}}
    check_containers(resolve(load_report(asked)))


def test_the_cluster_once_had_the_container():
    old = {"nodes": 1, "devices_per_node": 2, "container": {"engine": "apptainer", "image": "x"}}
    with refused_in_one_line("x: cluster: container: has moved"):
        load_report(SMALL | {"cluster": old}, "x")


def test_the_report_and_its_entries_choose_between_lock_and_image():
    def chosen(**changes: object) -> list[str]:
        report = resolve(
            load_report(SMALL | {"suites": [SUITE | changes.pop("suite", {})]} | changes)
        )
        runs = report.runs(report.suites[0])
        return ["image" if run.container else "lock" for run in runs][:: len(runs) - 1]

    assert chosen() == ["lock", "lock"]
    assert chosen(build="image") == ["image", "image"]
    named = {"pytorch": "docker.io/me/torch:1"}
    assert chosen(images=named) == ["image", "image"]
    assert chosen(images=named, build="lock") == ["lock", "lock"]
    entry = {"systems": [{"system": "pytorch", "build": "lock"}]}
    assert chosen(build="image", suite=entry) == ["lock", "lock"]
    assert chosen(images=named, suite=entry) == ["lock", "lock"]


def test_a_folder_is_known_by_its_files_alone(tmp_path: Path):
    folder = tmp_path / "image"
    (folder / "usr/bin").mkdir(parents=True)
    (folder / "usr/bin/program").write_text("1")
    (folder / "bin").symlink_to("usr/bin")
    digest, print_ = digest_of(folder), fingerprint_of(folder)
    # What engines and programs leave behind: mount points and bytecode.
    (folder / "work/results").mkdir(parents=True)
    (folder / "usr/__pycache__").mkdir()
    (folder / "usr/__pycache__/a.pyc").write_text("x")
    assert (digest_of(folder), fingerprint_of(folder)) == (digest, print_)
    (folder / "usr/bin/program").write_text("2")
    assert digest_of(folder) != digest
    assert fingerprint_of(folder) != print_
    (folder / "bin").unlink()
    (folder / "bin").symlink_to("usr")
    assert len({digest, digest_of(folder)}) == 2


def test_podman_takes_an_image_by_its_name_and_runs_no_entry_point(
    image: Path, podman_settings: None
):
    name = f"localhost/reperf-test-{os.getpid()}"
    (image / "entry.sh").write_text("#!/bin/sh\necho a banner\nexit 1\n")
    (image / "entry.sh").chmod(0o755)
    with tarfile.open(image.parent / "image.tar", "w") as packed:
        packed.add(image, ".")
    change = ["--change", 'ENTRYPOINT ["/entry.sh"]', str(image.parent / "image.tar"), name]
    subprocess.run(["podman", "import", "--quiet", *change], check=True, capture_output=True)
    try:
        build = ImageBuild(load_systems()["pytorch"], Container(engine="podman", image=name))
        with refused_in_one_line(f"{name}: has no torch: ModuleNotFoundError"):
            build_image(build)
        local, digest = engine_called("podman").pull(name, build.folder)
        assert local == f"{name}@{digest}"
    finally:
        subprocess.run(["podman", "rmi", "--force", name], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("engine", "complaint"),
    [
        ("podman", "is a file; allowed with podman: an unpacked folder"),
        ("bubblewrap", "is a file; allowed with bubblewrap: an unpacked folder"),
        ("charliecloud", "is no SquashFS file; allowed with charliecloud: one, or an unpacked"),
        ("pyxis", "is no SquashFS file; allowed with pyxis: one"),
        ("docker", "Docker runs no files; allowed: a reference, or another engine"),
    ],
)
def test_a_file_of_another_kind_than_an_engine_runs_is_refused(tmp_path, engine, complaint):
    (tmp_path / "image.sif").write_bytes(b"SIF")
    with refused_in_one_line(f"{tmp_path}/image.sif: {complaint}"):
        engine_called(engine).local(tmp_path / "image.sif")


@pytest.mark.parametrize("engine", ["charliecloud", "pyxis"])
def test_a_squashfs_file_is_known_by_its_first_bytes(tmp_path, engine):
    (tmp_path / "image").write_bytes(b"hsqs...")
    assert engine_called(engine).local(tmp_path / "image") == str(tmp_path / "image")


def test_a_framework_that_needs_a_driver_is_there_even_if_it_cannot_tell_its_version(image: Path):
    # As in an image of MXNet that was installed under a name that we do not know.
    packages = image / "usr/lib/python3/dist-packages"
    for name in ("torch", "cv2", "simplejpeg"):
        (packages / name).mkdir()
    (packages / "torch/__init__.py").write_text("import ctypes\nctypes.CDLL('libcuda.so.1')\n")
    (packages / "torch/version.py").write_text("cuda = '12.4'\n")
    build_image(build_of(image))
    built = read_environment(build_of(image))
    assert (built.framework, built.cuda) == (None, "12.4")
    # The same image, and options that the engine has not got.
    check_starts(build_of(image))
    container = Container(engine="charliecloud", image=str(image), options=("--no-such",))
    with refused_in_one_line(f"{image}: does not start with ch-run: ch-run: unrecognized option"):
        check_starts(ImageBuild(load_systems()["pytorch"], container))


def test_docker_runs_no_folder(image: Path):
    docker = ImageBuild(load_systems()["pytorch"], Container(engine="docker", image=str(image)))
    with pytest.raises(ReperfError, match=r"docker: does not start|Docker runs no files"):
        build_image(docker)


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
