"""Environments are built for real, from tiny wheels in a folder and without the network."""

import io
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from reperf.builds import LockBuild, inside, read_environment, steps, why_build
from reperf.builds.environment_build import build_lock
from reperf.builds.inside import BuildPython, modules_of
from reperf.builds.installed import check_locked, why_not_as_built
from reperf.errors import ReperfError
from reperf.systems import Lock, System
from uv import find_uv_bin

from tests.helpers.other_root import forget, use_root
from tests.helpers.written_files import write

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """A repository that holds nothing yet, whose packages come from its folder wheels/."""
    root = tmp_path_factory.mktemp("root")
    for name, version, requires in (
        ("engine", "1.0", ""),
        ("engine", "1.1", ""),
        ("engine", "2.0", "wheels_of"),
        ("wheels_of", "1.0", ""),
        ("wheels_of", "1.1", ""),
        ("another", "3", ""),
        ("tool", "1.0", ""),
        ("tool", "2.0", ""),
    ):
        make_wheel(root, name, version, requires)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inside, "ROOT", root)
        patch.chdir(root)
        patch.setenv("PIP_FIND_LINKS", str(root / "wheels"))
        patch.setenv("UV_NO_INDEX", "1")
        patch.setenv("UV_PYTHON_DOWNLOADS", "never")
        steps.uv_settings.cache_clear()
        use_root(patch, root)
        yield root
    steps.uv_settings.cache_clear()
    forget()


def make_wheel(root: Path, name: str, version: str, requires: str = "") -> None:
    """A wheel with one module that only knows its version."""
    info = f"{name}-{version}.dist-info"
    need = f"Requires-Dist: {requires}\n" if requires else ""
    content = {
        f"{name}.py": f"version = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{need}",
        f"{info}/WHEEL": WHEEL,
        f"{info}/RECORD": "",
    }
    (root / "wheels").mkdir(exist_ok=True)
    with zipfile.ZipFile(root / "wheels" / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in content.items():
            wheel.writestr(path, text)


def make_build(
    root: Path, *lock: str, python: str = HERE, imports: str = "engine", **system: object
) -> LockBuild:
    """The build of a system that trains with the package `engine`."""
    write(root / "envs/mine.txt", "\n".join(lock) + "\n")
    write(root / "workflow/systems/mine/resnet50.py", f"import {imports}\n")
    usual = {
        "id": "mine",
        "title": "",
        "framework": "engine",
        "about": "",
        "builds": {"cpu": ("lock",)},
        "locks": {"cpu": Lock(python=python, packages=("engine",))},
        "workloads": {"resnet50": {}},
    }
    return LockBuild(System(**usual | system), "cpu")


def test_the_lock_decides_the_versions_and_an_environment_counts_as_long_as_it_is_made_from_it(
    root,
):
    mine = make_build(root, "engine==1.0")
    assert why_build(mine)
    build_lock(mine)
    assert not why_build(mine)
    built = read_environment(mine)
    assert (built.packages, built.lock) == ({"engine": "1.0"}, "envs/mine.txt")
    assert built.python.startswith(HERE + ".")
    # Packages that somebody has upgraded are named with both versions.
    install = [find_uv_bin(), "pip", "install", "--quiet", "--find-links", "wheels"]
    install += ["--python", mine.python]
    subprocess.run([*install, "engine==1.1", "another"], check=True)
    assert why_build(mine) == (
        f"{mine.folder}: has other packages than when it was built: "
        "another 3 for none, engine 1.1 for 1.0"
    )
    # Another lock: with the whole closure, and without what this platform does not need.
    mine = make_build(root, "engine==2.0", "wheels_of==1.0", "a_gpu_library==13.0")
    assert why_build(mine)
    build_lock(mine)
    assert not why_build(mine)
    assert read_environment(mine).packages == {"engine": "2.0", "wheels-of": "1.0"}


@pytest.mark.parametrize(
    ("lock", "changes", "why"),
    [
        (["engine==2.0"], {}, "envs/mine.txt: other .*: wheels-of 1.1 for none; "),
        (["engine==9.9"], {}, r"envs/mine.txt: cannot be installed \(engine==9.9\): .* \| .*9.9"),
        (["engine==1.0"], {"imports": "engine.no"}, ".*resnet50.py: does not start in .*ModuleNot"),
        (["engine==1.0"], {"python": "3.99"}, r".*Python 3\.99 is neither installed nor can it"),
    ],
    ids=["lacks a package", "cannot be had", "does not start", "no such Python"],
)
def test_what_cannot_be_built_is_named_and_does_not_count(root, lock, changes, why):
    mine = make_build(root, *lock, **changes)
    with pytest.raises(ReperfError, match=f"^{why}"):
        build_lock(mine)
    assert why_build(mine)
    with pytest.raises(ReperfError, match="not built"):
        read_environment(mine)


@pytest.mark.parametrize(
    ("system", "why"),
    [
        (
            {"workloads": {"resnet50": {"model": "resnet50.ResNet50", "batches": "jpegs.decoded"}}},
            "No module .*trainers.frameworks.engine'",
        ),
        ({"launch": ("-m", "engine.run", "--nodes={nodes}")}, "No module named"),
    ],
    ids=["what a trainer is told of", "launcher"],
)
def test_all_that_a_system_starts_must_start(root, system, why):
    """In this Python, which lacks the framework, too."""
    mine = make_build(root, imports="json", **system)
    python = BuildPython([sys.executable], "here")
    with pytest.raises(ReperfError, match=f"^launcher or trainer: does not start in .*{why}"):
        python.start_trainers(mine.system, python.contents("engine", modules_of(mine.system)))


BACKEND = f"""\
import os, subprocess, zipfile, tool
def build_wheel(folder, *_):
    name = 'engine-3.0-py3-none-any.whl'
    by = subprocess.check_output([os.environ['ENGINE_BY']], text=True)
    made = f"{{os.environ['ENGINE_WITH']}} {{tool.version}} {{by}}"
    with zipfile.ZipFile(f'{{folder}}/{{name}}', 'w') as wheel:
        wheel.writestr('engine.py', f'made_with = {{made!r}}\\n')
        head = 'Metadata-Version: 2.1\\nName: engine\\nVersion: 3.0\\n'
        wheel.writestr('engine-3.0.dist-info/METADATA', head)
        wheel.writestr('engine-3.0.dist-info/WHEEL', {WHEEL!r})
        wheel.writestr('engine-3.0.dist-info/RECORD', '')
    return name
"""
"""Builds `engine`, which tells the variable and the tools that compiled it."""
PROJECT = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"


def test_a_package_is_compiled_as_uv_toml_says_with_tools_of_the_locks_versions(root):
    """And with a program of ours, in the system's folder."""
    with tarfile.open(root / "wheels/engine-3.0.tar.gz", "w:gz") as source:
        for name, text in (("backend.py", BACKEND), ("pyproject.toml", PROJECT)):
            entry = tarfile.TarInfo(f"engine-3.0/{name}")
            entry.size = len(text)
            source.addfile(entry, io.BytesIO(text.encode()))
    mine = make_build(root, "engine==3.0", "tool==1.0")
    uv = (
        'extra-build-dependencies = { engine = ["tool"] }\n'
        'extra-build-variables = { engine = { ENGINE_WITH = "gloo", ENGINE_BY = "by-hand" } }\n'
    )
    settings = write(root / "workflow/systems/mine/uv.toml", uv)
    program = root / "workflow/systems/mine/compile/by-hand"
    write(program, "#!/bin/sh\nprintf 'by hand'\n", 0o755)
    build_lock(mine)
    assert read_environment(mine).packages == {"engine": "3.0"}
    ask = [mine.python, "-c", "import engine; print(engine.made_with)"]
    answer = subprocess.run(ask, check=True, capture_output=True, text=True)
    assert answer.stdout == "gloo 1.0 by hand\n"
    settings.unlink()


def test_what_uv_has_kept_is_built_again_without_a_network(root, monkeypatch):
    shutil.copytree(root / "wheels", root / "index/engine")
    handler = partial(SimpleHTTPRequestHandler, directory=root / "index")
    monkeypatch.setattr(steps, "_find_links_of_pip", list)
    monkeypatch.delenv("UV_NO_INDEX")
    mine = make_build(root, "engine==1.0")
    with ThreadingHTTPServer(("localhost", 0), handler) as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://localhost:{index.server_port}")
        Thread(target=index.serve_forever).start()
        steps.uv_settings.cache_clear()
        build_lock(mine)
        index.shutdown()
    build_lock(mine)
    assert read_environment(mine).packages == {"engine": "1.0"}
    steps.uv_settings.cache_clear()


@pytest.mark.parametrize(("asked", "said"), [(None, "3600"), ("7", "7")])
def test_builds_wait_long_for_each_other_unless_someone_says_how_long(monkeypatch, asked, said):
    """uv's own 300 s are over before one that compiles Horovod is."""
    monkeypatch.delenv("UV_LOCK_TIMEOUT", raising=False)
    if asked:
        monkeypatch.setenv("UV_LOCK_TIMEOUT", asked)
    settings = steps.uv_settings.__wrapped__(links_of_pip=False)
    assert settings["UV_LOCK_TIMEOUT"] == said


LOCK = """\
# Made with uv from torch==1.0.
torch==2.13.0
    # via a package
Jinja2[i18n]==3.1.6 ; python_version >= "3.9" \\
    --hash=sha256:00
numpy==1.26.4; python_version < "3.12"
numpy==2.4.6; python_version >= "3.12"
triton==3.7.1+git1
setuptools
"""


@pytest.mark.parametrize(
    ("packages", "differ"),
    [
        ({"torch": "2.13.0+cpu", "jinja2": "3.1.6", "setuptools": "84.2.1"}, ""),
        ({"numpy": "1.26.4", "torch": "2.13"}, ""),
        ({"numpy": "2.4.6", "triton": "3.7.1+git1"}, ""),
        ({"numpy": "2.0.0"}, "numpy 2.0.0 for 1.26.4 or 2.4.6"),
        ({"torch": "2.11.0+cpu", "jinja2": "3.1.6"}, "torch 2.11.0+cpu for 2.13.0"),
        ({"torch": "2.13.0.post1"}, "torch 2.13.0.post1 for 2.13.0"),
        ({"triton": "3.7.1"}, "triton 3.7.1 for 3.7.1+git1"),
        ({"pip": "25.0"}, "pip 25.0 for none"),
        (dict.fromkeys("abcde", "1"), "a 1 for none, b 1 for none, c 1 for none and 2 more"),
    ],
)
def test_a_lock_allows_its_versions_and_builds_of_them_alone(tmp_path, packages, differ):
    lock = write(tmp_path / "mine.txt", LOCK)
    if differ:
        with pytest.raises(ReperfError, match=f"^envs/mine.txt: .*: {re.escape(differ)}; "):
            check_locked(packages, lock, "envs/mine.txt")
    else:
        check_locked(packages, lock, "envs/mine.txt")


def test_only_names_and_versions_count_however_they_are_spelt(tmp_path):
    files = {
        "ruamel.yaml-0.18.0.dist-info/METADATA": "Name: ruamel.yaml\nVersion: 0.18.0\n",
        "torch-2.13.0+cpu.dist-info/METADATA": "Name: torch\nVersion: 2.13.0+cpu\n",
        "~umpy-2.4.6.dist-info/METADATA": "",  # what an upgrade that broke off leaves
    }
    write(tmp_path / "lib/python3.11/site-packages", files)
    assert why_not_as_built(tmp_path, {"ruamel-yaml": "0.18", "torch": "2.13.0+cpu"}) == ""
    why = why_not_as_built(tmp_path, {"torch": "2.13.0+cu130", "numpy": "2.4.6"})
    assert why.endswith(
        ": numpy none for 2.4.6, ruamel-yaml 0.18.0 for none, torch 2.13.0+cpu for 2.13.0+cu130"
    )
