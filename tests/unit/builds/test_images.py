"""Images: what cannot be meant or lacks what it takes is refused, and what is in one is known."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from reperf.builds import (
    RECORD,
    Built,
    ImageBuild,
    digest_now,
    digest_of,
    fingerprint_of,
    read_environment,
    why_build,
)
from reperf.builds import build_of as build_of_run
from reperf.builds.engines import engine_called
from reperf.builds.fitness import why_not_compiled
from reperf.builds.image_build import _LOOK, build_image
from reperf.config import Container, Run, load_report
from reperf.doctor.probe import Request, look
from reperf.host import Image
from reperf.machine import check_containers, resolve
from reperf.systems import load_systems

from tests.helpers.refusal import cannot_run, refused_in_one_line
from tests.helpers.small_benchmark import SMALL
from tests.helpers.small_image import link_image, make_image
from tests.helpers.waiting import wait_for_text
from tests.helpers.written_files import write

SUITE = SMALL["suites"][0] | {"input": "synthetic"}
PACKAGES = "usr/lib/python3/dist-packages"


@pytest.fixture(scope="session")
def small_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image with Python and no framework; who changes it takes link_image of it."""
    return make_image(tmp_path_factory.mktemp("small") / "image")


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


CONFIGURATION = """\
version: 0.1
storage: {{filesystem: {{rootdirectory: {folder}/store}}}}
http: {{addr: "127.0.0.1:0"}}
"""


def podman(*arguments: object) -> str:
    done = subprocess.run(["podman", *arguments], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def registry(
    tmp_path: Path, small_image: Path, podman_settings: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The host and port of a registry that holds `tiny:1`, without a framework.

    The entry point of that image prints and fails. The test is in an empty working folder, and
    Podman has no image of the registry's.
    """
    if shutil.which("docker-registry") is None:
        cannot_run("docker-registry: apt-get install docker-registry")
    settings, log, packed = (tmp_path / name for name in ("registry.yml", "log", "image.tar"))
    settings.write_text(CONFIGURATION.format(folder=tmp_path))
    with log.open("wb") as said:
        serve = ["docker-registry", "serve", settings]
        server = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=said)
    found = wait_for_text(tmp_path, "log", r"listening on 127\.0\.0\.1:(\d+)", 60)
    host = f"localhost:{found[1]}"
    (tmp_path / "podman.conf").write_text(f'[[registry]]\nlocation = "{host}"\ninsecure = true\n')
    monkeypatch.setenv("CONTAINERS_REGISTRIES_CONF", str(tmp_path / "podman.conf"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    try:
        entry = write(tmp_path / "entry.sh", "#!/bin/sh\necho a banner\nexit 1\n", 0o755)
        with tarfile.open(packed, "w") as image:
            image.add(small_image, ".")
            image.add(entry, "entry.sh")
        change = ["--change", 'ENTRYPOINT ["/entry.sh"]']
        podman("import", "--quiet", *change, packed, f"{host}/tiny:1")
        podman("push", "--quiet", f"{host}/tiny:1")
        podman("rmi", "--force", f"{host}/tiny:1")
        yield host
    finally:
        server.kill()
        server.wait()
        if left := podman("images", "--quiet", "--filter", f"reference={host}/*").split():
            podman("rmi", "--force", *left)


@pytest.mark.image
def test_podman_pulls_by_tag_and_by_digest_and_runs_no_entry_point(registry: str):
    """What the registry lacks is refused, unless it was made here."""
    engine, folder = engine_called("podman"), Path("images")
    local, digest = engine.pull(f"{registry}/tiny:1", folder)
    assert local == f"{registry}/tiny@{digest}"
    podman("rmi", "--force", local)
    exact = f"{registry}/tiny:1@{digest}"
    assert engine.pull(exact, folder) == (local, digest)
    with refused_in_one_line(f"{exact}: has no torch: ModuleNotFoundError"):
        build_image(build_of(exact))
    for lacking in (f"{registry}/nothing:1", f"{registry}/tiny@sha256:{'ab' * 32}"):
        with refused_in_one_line(f"{lacking}: cannot be pulled: "):
            build_image(build_of(lacking))
    podman("tag", local, f"{registry}/nothing:1")
    assert engine.pull(f"{registry}/nothing:1", folder)[1] == digest


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


CONTENTS = {"python": "3.12.1", "system": None, "machine": "x86_64", "libc": "glibc 2.36"}
CONTENTS |= {"packages": {}, "overlay": {}, "framework": "9.1"}
PODMAN = f"""#!/bin/sh
echo "$@" >> said
case "$*" in
*trainers.inside*) echo '{json.dumps(CONTENTS)}';;
*sys.version_info*) echo 3.12;;
esac
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for Podman that notes how it was started, in an empty folder of the test's."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "podman", PODMAN, 0o755)


def run_in_image(device: str, **suite: object) -> Run:
    image = {"images": {"pytorch": "me/torch"}, "container": {"engine": "podman"}}
    image |= {"device": device, "suites": [SMALL["suites"][0] | suite]}
    report = load_report(SMALL | image)
    return report.runs(report.suites[0])[0]


def pull(build: ImageBuild, local: str = "me/torch", **more: object) -> None:
    """What the workflow leaves behind once it has pulled an image."""
    digest = digest_of(Path(local)) if Path(local).exists() else "sha256:0"
    image = Image(reference=local, digest=digest, engine="podman", engine_version="4.3")
    built = {"python": "3.12.1", "packages": {}, "image": image, "local_image": local} | more
    folder = build.folder.resolve()
    Built(recipe_sha256=build.recipe_digest, built_in=str(folder), **built).write(build.folder)


# Some frameworks cannot be imported without a driver, which a container has only with its GPUs.
@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(("device", "with_gpus"), [("cuda", True), ("cpu", False)])
def test_an_image_is_looked_into_with_the_gpus_that_its_runs_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, with_gpus: bool
):
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    run = run_in_image(device)
    pull(build_of_run(run))
    asked = Request(node="here", folder=tmp_path, meeting="no", secret="no", runs=(run,))
    (state,) = look(asked).environments.values()
    assert (state.trouble, state.framework) == ("", "torch 9.1")
    said = (tmp_path / "said").read_text().splitlines()
    started = [line for line in said if line.startswith("run ")]
    assert len(started) > 1
    assert all(("--device=nvidia.com/gpu=all" in line) == with_gpus for line in started)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("compilers", "why"),
    [
        ({"cpu": "/usr/bin/g++", "cuda": "/usr/bin/gcc"}, None),
        ({"cpu": "/usr/bin/g++", "cuda": None}, "needs a C compiler, and none is in me/torch: gcc"),
    ],
)
def test_what_compiles_in_an_image_needs_a_compiler_there(tmp_path, monkeypatch, compilers, why):
    monkeypatch.setenv("PATH", str(tmp_path))
    run = run_in_image("cuda", systems=[{"system": "pytorch", "variants": "compile"}])
    assert why_not_compiled(run) is None, "nobody has looked into the image yet"
    pull(build_of_run(run), compilers=compilers)
    said = why_not_compiled(run)
    assert (said is None) if why is None else (why in said)


def test_an_image_that_has_changed_or_is_gone_is_built_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    local = write(tmp_path / "image/program", "1").parent
    build = build_of(local)
    pull(build, str(local), fingerprint=fingerprint_of(local))
    first = digest_of(local)
    assert (why_build(build), digest_now(build)) == ("", first)
    assert why_build(build_of(local, "docker")) == f"{build.folder}: was built with podman"
    write(local / "program", "changed")
    digest_now.cache_clear()
    assert why_build(build) == f"{build.folder}: its image {local} has changed since"
    assert digest_now(build) == digest_of(local) != first
    shutil.rmtree(local)
    digest_now.cache_clear()
    assert why_build(build) == f"{build.folder}: its image {local} is gone"
    assert digest_now(build) == first
