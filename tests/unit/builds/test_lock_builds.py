"""Environments are built for real, from tiny wheels in a folder and without the network."""

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from reperf.builds import LockBuild, inside, read_environment, steps, why_build
from reperf.builds.environment_build import build_lock
from reperf.builds.inside import BuildPython, modules_of
from reperf.errors import ReperfError
from reperf.systems import Lock, System, load_systems
from uv import find_uv_bin

from tests.helpers.other_root import forget, use_root

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """A repository that holds nothing yet, whose packages come from its folder wheels/."""
    monkeypatch.setattr(inside, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    steps.uv_settings.cache_clear()
    use_root(monkeypatch, tmp_path)
    for folder in ("wheels", "envs", "workflow/systems/mine"):
        (tmp_path / folder).mkdir(parents=True)
    yield tmp_path
    steps.uv_settings.cache_clear()
    monkeypatch.undo()
    forget()


def make_wheel(root: Path, name: str, version: str, requires: str = "") -> None:
    """A wheel with one module that only knows its version."""
    info = f"{name}-{version}.dist-info"
    need = f"Requires-Dist: {requires}\n" if requires else ""
    content = {
        f"{name}.py": f"version = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{need}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(root / "wheels" / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in content.items():
            wheel.writestr(path, text)


def make_build(
    root: Path,
    *lock: str,
    python: str = HERE,
    imports: str = "engine",
    launch: tuple[str, ...] = (),
    told: dict[str, str] | None = None,
) -> LockBuild:
    """The build of a system that trains with the package `engine`."""
    (root / "envs/mine.txt").write_text("\n".join(lock) + "\n")
    (root / "workflow/systems/mine/resnet50.py").write_text(f"import {imports}\n")
    mine = System(
        id="mine",
        title="",
        framework="engine",
        about="",
        builds={"cpu": ("lock",)},
        locks={"cpu": Lock(python=python, packages=("engine",))},
        workloads={"resnet50": told or {}},
        launch=launch,
    )
    return LockBuild(mine, "cpu")


def test_the_lock_decides_the_versions_and_an_environment_counts_as_long_as_it_is_made_from_it(
    root,
):
    make_wheel(root, "engine", "1.0")
    make_wheel(root, "engine", "2.0", requires="wheels_of")
    make_wheel(root, "wheels_of", "1.0")
    make_wheel(root, "wheels_of", "1.1")
    mine = make_build(root, "engine==1.0")
    assert why_build(mine)
    build_lock(mine)
    assert not why_build(mine)
    built = read_environment(mine)
    assert (built.packages, built.lock) == ({"engine": "1.0"}, "envs/mine.txt")
    assert built.python.startswith(HERE + ".")
    assert mine.python.exists()
    # Another lock: with the whole closure, and without what this platform does not need.
    mine = make_build(root, "engine==2.0", "wheels_of==1.0", "a_gpu_library==13.0")
    assert why_build(mine)
    build_lock(mine)
    assert not why_build(mine)
    assert read_environment(mine).packages == {"engine": "2.0", "wheels-of": "1.0"}
    # The same lock again, by which a trainer does not start any more.
    (root / "workflow/systems/mine/resnet50.py").write_text("import engine.missing\n")
    with pytest.raises(ReperfError, match=r"resnet50.py: does not start in .*ModuleNotFound"):
        build_lock(mine)
    assert why_build(mine)
    with pytest.raises(ReperfError, match="not built"):
        read_environment(mine)


def test_what_the_lock_does_not_name_is_not_built(root):
    make_wheel(root, "engine", "1.0", requires="wheels_of")
    make_wheel(root, "wheels_of", "1.1")
    mine = make_build(root, "engine==1.0")
    with pytest.raises(ReperfError, match=r"^envs/mine.txt: other .*: wheels-of 1.1 for none; "):
        build_lock(mine)
    assert why_build(mine)


def test_a_package_that_was_upgraded_by_hand_is_named_with_both_versions(root):
    make_wheel(root, "engine", "1.0")
    make_wheel(root, "engine", "1.1")
    make_wheel(root, "another", "3")
    mine = make_build(root, "engine==1.0")
    build_lock(mine)
    install = [find_uv_bin(), "pip", "install", "--quiet", "--find-links", "wheels"]
    install += ["--python", mine.python]
    subprocess.run([*install, "engine==1.1", "another"], check=True)
    assert why_build(mine) == (
        f"{mine.folder}: has other packages than when it was built: "
        "another 3 for none, engine 1.1 for 1.0"
    )
    subprocess.run([*install, "engine==1.0"], check=True)
    remove = [find_uv_bin(), "pip", "uninstall", "--quiet", "--python", mine.python, "another"]
    subprocess.run(remove, check=True)
    assert why_build(mine) == ""


def test_a_package_that_cannot_be_had_is_named_and_the_environment_does_not_count(root):
    make_wheel(root, "engine", "1.0")
    mine = make_build(root, "engine==9.9")
    what_and_the_last_lines = r"^envs/mine.txt: cannot be installed \(engine==9.9\): .* \| .*9.9"
    with pytest.raises(ReperfError, match=what_and_the_last_lines):
        build_lock(mine)
    with pytest.raises(ReperfError, match="not built"):
        read_environment(mine)


@pytest.mark.parametrize(
    ("of_the_system", "why"),
    [
        (
            {"told": {"model": "resnet50.ResNet50", "batches": "jpegs.decoded_jpegs"}},
            r"^launcher or trainer: does not start in .*No module .*trainers.frameworks.engine'",
        ),
        (
            {"launch": ("-m", "engine.run", "--nodes={nodes}")},
            r"^launcher or trainer: does not start in .*No module named",
        ),
    ],
    ids=["what a trainer is told of", "launcher"],
)
def test_all_that_a_system_starts_must_start(root, of_the_system, why):
    """In this Python, which lacks the framework, too."""
    mine = make_build(root, imports="json", **of_the_system)
    python = BuildPython([sys.executable], "here")
    with pytest.raises(ReperfError, match=why):
        python.start_trainers(mine.system, python.contents("engine", modules_of(mine.system)))


def test_a_python_that_is_nowhere_is_named(root):
    make_wheel(root, "engine", "1.0")
    mine = make_build(root, "engine==1.0", python="3.99")
    with pytest.raises(ReperfError, match=r"Python 3\.99 is neither installed nor can it"):
        build_lock(mine)


def test_systems_that_share_an_environment_share_its_lock():
    own, guest = (LockBuild(load_systems()[name], "cpu") for name in ("mxnet", "ngc-mxnet"))
    assert own.folder == guest.folder == Path(f".envs/mxnet-{own.recipe_digest[:8]}")
    assert own.lock == guest.lock


def make_source(root: Path) -> None:
    """Sources of `engine` that write down the variable and the tools that compile them."""
    backend = (
        "import os, subprocess, zipfile, tool\n"
        "def build_wheel(folder, *_):\n"
        "    name = 'engine-1.0-py3-none-any.whl'\n"
        "    info = 'engine-1.0.dist-info/'\n"
        "    with zipfile.ZipFile(f'{folder}/{name}', 'w') as wheel:\n"
        "        by = subprocess.check_output([os.environ['ENGINE_BY']], text=True)\n"
        "        made = f\"{os.environ['ENGINE_WITH']} {tool.version} {by}\"\n"
        "        wheel.writestr('engine.py', f'made_with = {made!r}\\n')\n"
        "        head = 'Metadata-Version: 2.1\\nName: engine\\nVersion: 1.0\\n'\n"
        "        wheel.writestr(info + 'METADATA', head)\n"
        "        tag = 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'\n"
        "        wheel.writestr(info + 'WHEEL', tag)\n"
        "        wheel.writestr(info + 'RECORD', '')\n"
        "    return name\n"
    )
    build_system = (
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    )
    with tarfile.open(root / "wheels/engine-1.0.tar.gz", "w:gz") as source:
        for name, text in (("backend.py", backend), ("pyproject.toml", build_system)):
            entry = tarfile.TarInfo(f"engine-1.0/{name}")
            entry.size = len(text)
            source.addfile(entry, io.BytesIO(text.encode()))


def test_a_package_is_compiled_as_uv_toml_says_with_tools_of_the_locks_versions(root):
    """And with a program of ours, in the system's folder."""
    make_wheel(root, "tool", "1.0")
    make_wheel(root, "tool", "2.0")
    make_source(root)
    mine = make_build(root, "engine==1.0", "tool==1.0")
    (root / "workflow/systems/mine/uv.toml").write_text(
        'extra-build-dependencies = { engine = ["tool"] }\n'
        'extra-build-variables = { engine = { ENGINE_WITH = "gloo", ENGINE_BY = "by-hand" } }\n'
    )
    program = root / "workflow/systems/mine/compile/by-hand"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nprintf 'by hand'\n")
    program.chmod(0o755)
    build_lock(mine)
    assert read_environment(mine).packages == {"engine": "1.0"}
    ask = [mine.python, "-c", "import engine; print(engine.made_with)"]
    answer = subprocess.run(ask, check=True, capture_output=True, text=True)
    assert answer.stdout == "gloo 1.0 by hand\n"


@pytest.mark.parametrize(("asked", "said"), [(None, "3600"), ("7", "7")])
def test_builds_wait_long_for_each_other_unless_someone_says_how_long(monkeypatch, asked, said):
    """uv's own 300 s are over before one that compiles Horovod is."""
    monkeypatch.delenv("UV_LOCK_TIMEOUT", raising=False)
    if asked:
        monkeypatch.setenv("UV_LOCK_TIMEOUT", asked)
    settings = steps.uv_settings.__wrapped__(links_of_pip=False)
    assert settings["UV_LOCK_TIMEOUT"] == said
