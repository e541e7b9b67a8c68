"""The oldest Snakemake that pyproject.toml allows makes a report; one newer than tested warns."""

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from reperf.plans.checking import NEWEST, warning_of_version
from uv import find_uv_bin

from tests.helpers.small_benchmark import ROOT, TOY, Benchmark

SUITE = TOY["suites"][0] | {"input": "synthetic", "topologies": ["1n1g"]}
PINNED = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()


def allowed() -> SpecifierSet:
    """The versions of Snakemake that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = project["optional-dependencies"]["workflow"]
    needed = {one.name: one for one in map(Requirement, extra)}
    return needed["snakemake"].specifier


def bounds() -> dict[str, Version]:
    """The version that each sign stands before, such as `<`."""
    return {one.operator: Version(one.version) for one in allowed()}


@dataclass
class ByOtherSnakemake(Benchmark):
    """A benchmark that the Snakemake in a folder runs, with all else as it is installed."""

    packages: Path

    @property
    def environment(self) -> dict[str, str]:
        there = super().environment
        return there | {"PYTHONPATH": f"{self.packages}{os.pathsep}{there['PYTHONPATH']}"}

    def snakemake(self, *arguments: str, timeout: float = 900) -> subprocess.CompletedProcess:
        return self.call(*self.command(*arguments), timeout=timeout)


@pytest.fixture
def by_oldest(tmp_path: Path, benchmark: Benchmark) -> ByOtherSnakemake:
    """A benchmark that the oldest Snakemake runs, with what it needs, as it is pinned."""
    packages, pins = tmp_path / "packages", tmp_path / "pins.txt"
    pins.write_text("\n".join(line for line in PINNED if not line.startswith("snakemake==")))
    install = [find_uv_bin(), "pip", "install", "--quiet", "--python", sys.executable]
    oldest = ["--target", packages, "--constraints", pins, f"snakemake=={bounds()['>=']}"]
    subprocess.run([*install, *oldest], check=True)
    return ByOtherSnakemake(benchmark.folder, packages)


@pytest.mark.weekly
def test_the_oldest_that_is_allowed_makes_a_report(by_oldest, begun):
    by_oldest.take_over(begun)
    version = by_oldest.call(sys.executable, "-m", "snakemake", "--version").stdout
    assert Version(version.strip()) == bounds()[">="]
    by_oldest.configure(suites=[SUITE], repeats=1)
    by_oldest.made()
    assert (by_oldest.folder / "results/report.html").exists()
    assert "Nothing to be done" in by_oldest.made()


def test_a_newer_one_than_those_tested_is_warned_of():
    (installed,) = (Requirement(line) for line in PINNED if line.startswith("snakemake=="))
    (pin,) = installed.specifier
    version = Version(pin.version)
    assert f"{version.major}.{version.minor}" == NEWEST
    assert warning_of_version(pin.version) == warning_of_version("9.13.0") == ""
    for newer in (f"{version.major}.{version.minor + 1}.0", f"{version.major + 1}.0.0"):
        assert newer in warning_of_version(newer)
