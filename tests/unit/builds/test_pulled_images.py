"""Images out of a real registry on this machine: by tag, by digest, and those it does not have."""

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
from tests.helpers.written_files import write

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

    The entry point of that image prints and fails.

    The test is in an empty working folder, and Podman has no image of the registry's.
    """
    if shutil.which("docker-registry") is None:
        cannot_run("docker-registry: apt-get install docker-registry")
    settings, log, packed = (tmp_path / name for name in ("registry.yml", "log", "image.tar"))
    settings.write_text(CONFIGURATION.format(folder=tmp_path))
    with log.open("wb") as said:
        serve = ["docker-registry", "serve", settings]
        server = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=said)
    while not (found := re.search(r"listening on 127\.0\.0\.1:(\d+)", log.read_text())):
        assert server.poll() is None, log.read_text()
        time.sleep(0.1)
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
        if left := podman("images", "--quiet", "--filter", f"reference={host}/tiny").split():
            podman("rmi", "--force", *left)


@pytest.mark.image
def test_podman_pulls_by_tag_and_by_digest_and_runs_no_entry_point(registry: str):
    """What the registry lacks is refused."""

    def build_of(image: str) -> ImageBuild:
        container = Container(engine="podman", image=f"{registry}/{image}")
        return ImageBuild(load_systems()["pytorch"], container)

    engine, folder = engine_called("podman"), Path("images")
    local, digest = engine.pull(f"{registry}/tiny:1", folder)
    assert local == f"{registry}/tiny@{digest}"
    podman("rmi", "--force", local)
    exact = f"tiny:1@{digest}"
    assert engine.pull(f"{registry}/{exact}", folder) == (local, digest)
    with refused_in_one_line(f"{registry}/{exact}: has no torch: ModuleNotFoundError"):
        build_image(build_of(exact))
    for lacking in ("nothing:1", f"tiny@sha256:{'ab' * 32}"):
        with refused_in_one_line(f"{registry}/{lacking}: cannot be pulled: "):
            build_image(build_of(lacking))
