"""The doctor's look into an image, with a stand-in for Podman that notes how it was started."""

import json
import os
from pathlib import Path

import pytest
from reperf.builds import Built, build_of
from reperf.builds.fitness import why_not_compiled
from reperf.config import Run, load_report
from reperf.doctor.probe import Request, look
from reperf.host import Image

from tests.helpers.small_benchmark import SMALL
from tests.helpers.written_files import write

CONTENTS = {"python": "3.12.1", "system": None, "machine": "x86_64", "libc": "glibc 2.36"}
CONTENTS |= {"packages": {}, "overlay": {}, "framework": "9.1"}
PODMAN = f"""#!/bin/sh
echo "$@" >> said
case "$*" in
*trainers.inside*) echo '{json.dumps(CONTENTS)}';;
*sys.version_info*) echo 3.12;;
esac
"""


@pytest.fixture(autouse=True)
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in, in an empty folder where the test is."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "podman", PODMAN, 0o755)


def run_in_image(device: str, **suite: object) -> Run:
    image = {"images": {"pytorch": "me/torch"}, "container": {"engine": "podman"}}
    image |= {"device": device, "suites": [SMALL["suites"][0] | suite]}
    report = load_report(SMALL | image)
    return report.runs(report.suites[0])[0]


def pull(run: Run, **more: object) -> None:
    """What the workflow leaves behind once it has pulled an image."""
    build = build_of(run)
    build.folder.mkdir(parents=True)
    Built(
        recipe_sha256=build.recipe_digest,
        built_in=str(build.folder.resolve()),
        local_image="me/torch",
        image=Image(reference="me/torch", digest="sha256:0", engine="podman", engine_version="4.3"),
        python="3.12.1",
        packages={},
        **more,
    ).write(build.folder)


# Some frameworks cannot be imported without a driver, which a container has only with its GPUs.
@pytest.mark.parametrize(("device", "with_gpus"), [("cuda", True), ("cpu", False)])
def test_an_image_is_looked_into_with_the_gpus_that_its_runs_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, with_gpus: bool
):
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    run = run_in_image(device)
    pull(run)
    asked = Request(node="here", folder=tmp_path, meeting="no", secret="no", runs=(run,))
    (state,) = look(asked).environments.values()
    assert (state.trouble, state.framework) == ("", "torch 9.1")
    said = (tmp_path / "said").read_text().splitlines()
    started = [line for line in said if line.startswith("run ")]
    assert len(started) > 1
    assert all(("--device=nvidia.com/gpu=all" in line) == with_gpus for line in started)


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
    pull(run, compilers=compilers)
    said = why_not_compiled(run)
    assert (said is None) if why is None else (why in said)
