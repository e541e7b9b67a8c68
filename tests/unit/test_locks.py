"""Environments can be made again: locks name exact versions, images a tag and what it stood for."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from reperf.systems import ENVIRONMENTS, System, load_systems

SYSTEMS = load_systems().values()
LOCKS = sorted(ENVIRONMENTS.glob("*.txt"))
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
def test_a_lock_and_an_image_belong_to_a_system(lock: Path):
    assert lock.stem in load_systems()


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.id)
def test_what_a_system_imports_is_in_its_lock(system: System):
    owner = load_systems()[system.shares or system.id]
    assert owner.python == system.python
    assert owner.packages
    assert set(owner.packages) <= set(pins(system.lock))


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.id)
def test_what_compiles_a_package_is_in_the_lock(system: System):
    packages = pins(system.lock)
    for path in system.recipe[1:]:
        settings = tomllib.loads(path.read_text())
        for built, needs in settings["extra-build-dependencies"].items():
            named = {name: version for name, _, version in (need.partition("==") for need in needs)}
            assert {built, *named, "setuptools", "wheel"} <= set(packages)
            assert all(packages[name] == version for name, version in named.items() if version)
        for package in settings["dependency-metadata"]:
            assert packages[package["name"]] == package["version"]


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.id)
def test_an_image_has_a_tag_and_a_place_for_its_digest(system: System):
    image = yaml.safe_load((ENVIRONMENTS / f"{system.id}.image.yaml").read_text())
    assert set(image) == {"image", "tag", "digest"}
    assert re.fullmatch(r"[a-z0-9.-]+\.[a-z]+(/[a-z0-9-]+)+", image["image"])
    assert re.search(r"\d", image["tag"]), "a tag such as `latest` names no version"
    assert image["digest"] is None or re.fullmatch(r"sha256:[0-9a-f]{64}", image["digest"])
