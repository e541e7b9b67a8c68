"""Images out of a real registry on this machine: by tag, by digest, and those it does not have."""

import os
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from reperf.builds import ImageBuild
from reperf.builds.engines import engine_called
from reperf.builds.image_build import build_image
from reperf.config import Container
from reperf.systems import load_systems

from tests.helpers.refusal import cannot_run, refused_in_one_line

pytestmark = pytest.mark.image
PROGRAMS = ("docker-registry", "openssl", "podman", "ch-run", "ch-image")
CONFIGURATION = """\
version: 0.1
storage: {{filesystem: {{rootdirectory: {folder}/store}}}}
http: {{addr: "127.0.0.1:0", tls: {{certificate: {folder}/cert.pem, key: {folder}/key.pem}}}}
"""
CERTIFICATE = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
NAME = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, small_image: Path, podman_settings: None
) -> Iterator[str]:
    """The host and port of a registry that holds `tiny:1`, an image without a framework."""
    if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
        cannot_run(f"{', '.join(missing)}: apt-get install docker-registry openssl charliecloud")
    folder = tmp_path_factory.mktemp("registry")
    files = ["-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
    subprocess.run([*CERTIFICATE, *NAME, *files], check=True, capture_output=True)
    (folder / "registry.yml").write_text(CONFIGURATION.format(folder=folder))
    with (folder / "registry.log").open("wb") as log:
        serve = ["docker-registry", "serve", folder / "registry.yml"]
        server = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=log)
    host = f"localhost:{port_of(server, folder / 'registry.log')}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_REGISTRIES_CONF", str(folder / "registries.conf"))
        patch.setenv("REQUESTS_CA_BUNDLE", str(folder / "cert.pem"))
        try:
            insecure = f'[[registry]]\nlocation = "{host}"\ninsecure = true\n'
            (folder / "registries.conf").write_text(insecure)
            with tarfile.open(folder / "image.tar", "w") as packed:
                packed.add(small_image, ".")
            podman("import", "--quiet", str(folder / "image.tar"), f"{host}/tiny:1")
            podman("push", "--quiet", f"{host}/tiny:1")
            podman("rmi", "--force", f"{host}/tiny:1")
            yield host
        finally:
            server.kill()
            server.wait()
            remove_images(host)


@pytest.fixture
def registry(served: str, tmp_path: Path, monkeypatch) -> Iterator[str]:
    """The registry's host and port, in an empty working folder and with no image pulled."""
    monkeypatch.delenv("TMPDIR", raising=False)  # ch-run shows it as /tmp, with this test's folder
    monkeypatch.setenv("CH_IMAGE_STORAGE", str(tmp_path / "charliecloud"))
    # ch-image is a program of the machine's own Python, whichever others there are.
    monkeypatch.setenv("PATH", f"/usr/sbin:/usr/bin:/bin:{os.environ['PATH']}")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    yield served
    remove_images(served)


def remove_images(host: str) -> None:
    """Remove what Podman has of a registry's."""
    if left := podman("images", "--quiet", "--filter", f"reference={host}/tiny").split():
        podman("rmi", "--force", *left)


def podman(*arguments: str) -> str:
    done = subprocess.run(["podman", *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def port_of(server: subprocess.Popen, log: Path) -> str:
    """The port that the registry has chosen, once it listens."""
    while not (found := re.search(r"listening on 127\.0\.0\.1:(\d+)", log.read_text())):
        assert server.poll() is None, log.read_text()
        time.sleep(0.1)
    return found[1]


def build_of(engine: str, image: str) -> ImageBuild:
    return ImageBuild(load_systems()["pytorch"], Container(engine=engine, image=image))


@pytest.mark.parametrize("engine", ["podman", "charliecloud"])
def test_an_image_is_pulled_and_looked_into_and_what_the_registry_lacks_is_refused(
    engine: str, registry: str
):
    name = f"{registry}/tiny:1"
    with refused_in_one_line(f"{name}: has no torch: ModuleNotFoundError"):
        build_image(build_of(engine, name))
    for lacking in (f"{registry}/nothing:1", f"{registry}/tiny@sha256:{'ab' * 32}"):
        with refused_in_one_line(f"{lacking}: cannot be pulled: "):
            build_image(build_of(engine, lacking))


def test_podman_pulls_by_tag_and_by_digest(registry: str):
    engine, folder = engine_called("podman"), Path("images")
    local, digest = engine.pull(f"{registry}/tiny:1", folder)
    assert local == f"{registry}/tiny@{digest}"
    podman("rmi", "--force", local)
    assert engine.pull(f"{registry}/tiny:1@{digest}", folder) == (local, digest)
