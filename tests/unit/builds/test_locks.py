"""Environments can be made again: locks name exact versions, images a tag and what it stood for."""

import re
import tomllib
from pathlib import Path

import pytest
from reperf.builds import LockBuild, every_lock
from reperf.builds.engines import parse_reference
from reperf.builds.image_build import REQUIREMENT
from reperf.files import sha256
from reperf.systems import ENVIRONMENTS, System, load_systems

SYSTEMS = load_systems().values()
OVERLAYS = sorted(ENVIRONMENTS.glob("*.overlay.txt"))
LOCKS = sorted(set(ENVIRONMENTS.glob("*.txt")) - set(OVERLAYS))
EXACT = re.compile(r"(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)==(?P<version>[0-9][0-9a-z.]*)")


def pins(lock: Path) -> dict[str, str]:
    """The lock's packages: name -> version."""
    lines = [line for line in lock.read_text().splitlines() if not line.startswith("#")]
    matches = [EXACT.fullmatch(line) for line in lines]
    assert all(matches), [line for line, match in zip(lines, matches, strict=True) if not match]
    packages = {match["name"]: match["version"] for match in matches}
    assert len(packages) == len(lines)
    return packages


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_names_one_exact_version_of_each_package(lock: Path):
    packages = pins(lock)
    assert packages
    assert "apex" not in packages, "on the package index, apex is an unrelated package"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_belongs_to_a_system(lock: Path):
    system, _, kind = lock.stem.partition(".")
    assert system in load_systems()
    assert kind in ("", "cuda", "volta")


@pytest.mark.parametrize(
    ("lock", "package", "version"),
    [
        ("pytorch.cuda", "torch", "2.13.0"),
        ("ngc-pytorch.cuda", "torch", "2.13.0"),
        ("tensorflow2.cuda", "tensorflow", "2.21.0"),
        ("oneflow.cuda", "oneflow", "0.9.0"),
        ("paddlepaddle.cuda", "paddlepaddle-gpu", "2.6.2"),
        ("mxnet.cuda", "mxnet-cu112", "1.9.1"),
        ("jax.cuda", "jax-cuda13-plugin", "0.12.0.1"),
        # The last on the index with code for compute capability 7.0: torch and cuDNN.
        ("pytorch.volta", "torch", "2.10.0"),
        ("ngc-pytorch.volta", "torch", "2.10.0"),
        ("pytorch.volta", "nvidia-cudnn-cu12", "9.10.2.21"),
        ("tensorflow2.cuda", "nvidia-cudnn-cu12", "9.10.2.21"),
    ],
)
def test_a_lock_for_gpus_holds_the_version_whose_gpus_are_documented(lock, package, version):
    assert pins(ENVIRONMENTS / f"{lock}.txt")[package] == version


@pytest.mark.parametrize(
    "lock", sorted(ENVIRONMENTS.glob("*.cuda.txt")), ids=lambda lock: lock.stem
)
def test_a_lock_for_gpus_names_cudas_libraries_of_one_cuda(lock: Path):
    names = [name for name in pins(lock) if name.startswith("nvidia-")]
    assert any("cudnn" in name for name in names)
    assert len({found[1] for name in names if (found := re.search(r"-cu(?:da)?(1\d)", name))}) == 1


@pytest.mark.parametrize("build", every_lock().values(), ids=lambda build: build.id)
def test_what_a_system_imports_is_in_its_lock(build: LockBuild):
    assert build.settings.packages
    names = {package.partition("[")[0] for package in build.settings.packages}
    assert names <= set(pins(build.lock))


@pytest.mark.parametrize("build", every_lock().values(), ids=lambda build: build.id)
def test_what_compiles_a_package_is_in_the_lock(build: LockBuild):
    packages = pins(build.lock)
    for path in build.recipe[1:]:
        settings = tomllib.loads(path.read_text())
        for built, needs in settings["extra-build-dependencies"].items():
            named = {name: version for name, _, version in (need.partition("==") for need in needs)}
            assert {built, *named, "setuptools", "wheel"} <= set(packages)
            assert all(packages[name] == version for name, version in named.items() if version)
        for package in settings["dependency-metadata"]:
            assert packages[package["name"]] == package["version"]


@pytest.mark.parametrize("build", every_lock().values(), ids=lambda build: build.id)
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
