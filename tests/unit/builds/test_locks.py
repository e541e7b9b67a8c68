"""Environments can be made again: locks name exact versions, images a tag and what it stood for."""

import re
import tomllib
from pathlib import Path

import pytest
from reperf.builds import LockBuild, every_lock
from reperf.builds.engines import parse_reference
from reperf.builds.image_build import REQUIREMENT
from reperf.files import sha256
from reperf.layout import ROOT
from reperf.systems import ENVIRONMENTS, System, load_systems

SYSTEMS = load_systems().values()
OVERLAYS = sorted(ENVIRONMENTS.glob("*.overlay.txt"))
LOCKS = sorted(set(ENVIRONMENTS.glob("*.txt")) - set(OVERLAYS))
EXACT = re.compile(r"(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)==(?P<version>[0-9][0-9a-z.]*)")


each_build = pytest.mark.parametrize("build", every_lock().values(), ids=lambda build: build.id)


def pins(lock: Path) -> dict[str, str]:
    """The lock's packages: name -> version."""
    lines = [line for line in lock.read_text().splitlines() if not line.startswith("#")]
    matches = [EXACT.fullmatch(line) for line in lines]
    assert all(matches), [line for line, match in zip(lines, matches, strict=True) if not match]
    packages = {match["name"]: match["version"] for match in matches}
    assert len(packages) == len(lines)
    return packages


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_belongs_to_a_system_and_names_one_exact_version_of_each_package(lock: Path):
    packages = pins(lock)
    assert packages
    assert "apex" not in packages, "on the package index, apex is an unrelated package"
    system, _, kind = lock.stem.partition(".")
    assert system in load_systems()
    assert kind in ("", "cuda", "volta")


HELD = {"torch": "torch", "TensorFlow": "tensorflow", "Paddle": "paddlepaddle-gpu"}
HELD |= {"OneFlow": "oneflow", "JAX": "jax-cuda13-plugin", "MXNet": "mxnet-cu112"}


def test_the_page_of_gpu_builds_says_which_versions_the_locks_hold():
    page = (ROOT / "docs/gpu-builds.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?`) \| (.+?) \| [\d.]+ \|", page, re.MULTILINE)
    told = {
        (lock, HELD[name]): version
        for locks, holds in rows
        for lock in re.findall("`(.+?)`", locks)
        for name, version in re.findall(r"(\w+) ([\d.]+)", holds)
        if name in HELD
    }
    assert {lock for lock, _ in told} == {lock.stem for lock in LOCKS if "." in lock.stem}
    assert told == {(lock, one): pins(ENVIRONMENTS / f"{lock}.txt")[one] for lock, one in told}
    # The last on the index with code for compute capability 7.0.
    assert "cuDNN 9.10, the last with code for it" in page
    for lock in ("pytorch.volta", "tensorflow2.cuda"):
        assert pins(ENVIRONMENTS / f"{lock}.txt")["nvidia-cudnn-cu12"].startswith("9.10.")


@pytest.mark.parametrize(
    "lock", sorted(ENVIRONMENTS.glob("*.cuda.txt")), ids=lambda lock: lock.stem
)
def test_a_lock_for_gpus_names_cudas_libraries_of_one_cuda(lock: Path):
    names = [name for name in pins(lock) if name.startswith("nvidia-")]
    assert any("cudnn" in name for name in names)
    assert len({found[1] for name in names if (found := re.search(r"-cu(?:da)?(1\d)", name))}) == 1


@each_build
def test_what_a_system_imports_and_what_compiles_it_is_in_its_lock(build: LockBuild):
    packages = pins(build.lock)
    assert build.settings.packages
    assert {package.partition("[")[0] for package in build.settings.packages} <= set(packages)
    for path in build.recipe[1:]:
        settings = tomllib.loads(path.read_text())
        for built, needs in settings["extra-build-dependencies"].items():
            named = {name: version for name, _, version in (need.partition("==") for need in needs)}
            assert {built, *named, "setuptools", "wheel"} <= set(packages)
            assert all(packages[name] == version for name, version in named.items() if version)
        for package in settings["dependency-metadata"]:
            assert packages[package["name"]] == package["version"]


@each_build
def test_what_is_compiled_by_a_program_of_ours_is_compiled_again_when_it_changes(build: LockBuild):
    """uv knows what it has compiled by the variables, and not by the program's contents."""
    for path in build.recipe[1:]:
        for variables in tomllib.loads(path.read_text())["extra-build-variables"].values():
            programs = [path.parent / "compile" / value for value in variables.values()]
            digests = [sha256(program) for program in programs if program.is_file()]
            assert digests == [
                value for name, value in variables.items() if name.endswith("_SHA256")
            ]


@pytest.mark.parametrize(
    "system", [one for one in SYSTEMS if one.image], ids=lambda system: system.id
)
def test_an_image_has_a_registry_and_a_version(system: System):
    assert re.fullmatch(r"[a-z0-9.-]+\.[a-z]+(/[a-z0-9-]+)+", system.image.image)
    assert re.search(r"\d", system.image.tag), "a tag such as `latest` names no version"
    assert parse_reference(system.image.reference).repository == system.image.image


@pytest.mark.parametrize("path", OVERLAYS, ids=lambda path: path.name)
def test_an_overlay_takes_the_versions_of_the_lock(path: Path):
    """They were tried together, with this framework; what is for a CUDA, where a lock has it."""
    system = load_systems()[path.name.removesuffix(".overlay.txt")]
    lock = pins(ENVIRONMENTS / "ngc-pytorch.volta.txt") | pins(LockBuild(system, "cpu").lock)
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert lines
    for line in lines:
        found = REQUIREMENT.fullmatch(line)
        assert found, line
        assert line.startswith(f"{found['package']}=={lock[found['package']]} ")


def test_systems_that_share_an_environment_share_its_lock():
    own, guest = (LockBuild(load_systems()[name], "cpu") for name in ("mxnet", "ngc-mxnet"))
    assert own.folder == guest.folder == Path(f".envs/mxnet-{own.recipe_digest[:8]}")
    assert own.lock == guest.lock
