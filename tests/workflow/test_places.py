"""Folders of any name, folders that move, and machines on which little is installed."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.helpers.small_benchmark import HERE, ROOT, TOY, Benchmark, new_benchmark

ODD_NAME = 'it\'s {suite} [a]*? größer ☃ "$HOME" `id` \\n;&c#d%e=~'
"""Each part is what some shell, or Snakemake, or make would take for its own."""
MEASURED = "results/suites/small/measurements.csv"
SUITE = TOY["suites"][0] | {"input": "synthetic", "topologies": ["1n1g"]}
OTHER = "other"
"""A second system, with an environment of its own."""


@dataclass
class Place(Benchmark):
    """A benchmark with environments of its own."""

    python: str = sys.executable
    path: str | None = None

    def command(self, *arguments: str) -> list[str]:
        return [self.python, *super().command(*arguments)[1:]]

    def snakemake(self, *arguments: str, timeout: float = 900) -> subprocess.CompletedProcess:
        """Call Snakemake by this place's Python, or in a fork where that is the one that tests."""
        if self.python == sys.executable and not self.path:
            return super().snakemake(*arguments, timeout=timeout)
        return self.call(*self.command(*arguments), timeout=timeout)

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | ({"PATH": self.path} if self.path else {})

    def train(self, repeats: int = 1, *systems: str) -> None:
        self.configure(suites=[SUITE | {"systems": ["stand-in", *systems]}], repeats=repeats)

    def measure(self) -> str:
        """Build, train and measure; returns what was said."""
        return self.made(MEASURED)

    def built(self, name: str = "stand-in") -> Path:
        """Where a system's environment lies: its name holds the recipe's digest."""
        (folder,) = self.folder.glob(f".envs/{name}-????????")
        return folder

    def built_in(self) -> str:
        """The folder that the environment's record names."""
        return json.loads((self.built() / "environment.json").read_text())["built_in"]

    def records(self) -> dict[str, str]:
        """Each run's path -> its record."""
        found = sorted(self.folder.glob("results/runs/*/*/*/*/run.json"))
        return {str(path.relative_to(self.folder)): path.read_text() for path in found}

    def moved(self, folder: Path) -> "Place":
        folder.parent.mkdir(exist_ok=True)
        self.folder.rename(folder)
        return Place(folder)


def new_place(folder: Path) -> Place:
    new_benchmark(folder, folder)
    (folder / ".envs").unlink()
    place = Place(folder)
    place.train()
    return place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Nothing of it is built yet."""
    return new_place(tmp_path / "place")


@pytest.mark.weekly
def test_a_copy_and_a_moved_folder_build_their_own_environments_and_train_no_run_again(
    place, tmp_path
):
    place.measure()
    copy = Place(tmp_path / "copy")
    shutil.copytree(place.folder, copy.folder, symlinks=True)
    place = place.moved(tmp_path / "elsewhere/place")
    for one in (copy, place):
        before = one.records()
        one.train(repeats=2)
        assert one.planned(MEASURED) == {"environment": 1, "train": 2, "measure": 1}
        one.measure()
        assert before.items() <= one.records().items()
        assert one.built_in() == str(one.built().resolve())
        assert one.planned(MEASURED) == {}
    # Without Snakemake's memory, a run that must be trained refuses another folder's environment.
    lost = copy.moved(tmp_path / "elsewhere/copy")
    shutil.rmtree(lost.folder / ".snakemake")
    lost.train(repeats=3)
    said = lost.refused(MEASURED, "--forcerun", "measure", "--retries", "0")
    record = f".envs/{lost.built().name}/environment.json"
    assert f"and was moved or copied; once {record} is removed, the next call" in said
    (lost.folder / record).unlink()
    lost.measure()
    assert before.items() <= lost.records().items()


@pytest.mark.long
def test_environments_that_folders_of_any_name_share_stay_as_they_are(tmp_path):
    place = new_place(tmp_path / ODD_NAME / "place")
    place.measure()
    assert [json.loads(record)["status"] for record in place.records().values()] == ["ok"]
    other = new_place(tmp_path / "other")
    (other.folder / ".envs").symlink_to(place.folder / ".envs")
    other = other.moved(tmp_path / "elsewhere/other")
    built_in = place.built_in()
    other.measure()
    assert place.built_in() == built_in


@pytest.mark.long
def test_rules_do_not_call_the_library_of_the_folder_that_was_copied(place, tmp_path):
    copy = Place(tmp_path / "copy")
    shutil.copytree(place.folder, copy.folder)
    answer = subprocess.run(
        copy.command("-n"),
        cwd=copy.folder,
        env=place.environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert answer.returncode != 0
    line = answer.stderr.splitlines()[-1]
    assert line.startswith(f"reperf: {copy.folder}: has its rules here but its library in ")
    assert str(place.folder) in line
    assert "make .venv/reperf-installed" in line


def take_its_python_away(environment: Path) -> None:
    (environment / "bin/python").unlink()
    (environment / "bin/python").symlink_to("/nowhere/python")


def cut_its_record(environment: Path) -> None:
    (environment / "environment.json").write_text("")


def upgrade_a_package(environment: Path) -> None:
    (metadata,) = environment.glob("lib/python*/site-packages/idna-*.dist-info/METADATA")
    text = metadata.read_text()
    metadata.unlink()  # uv's cache has the same file
    metadata.write_text(re.sub(r"(?m)^Version: .*", "Version: 99", text))


SPOILT = {
    "has other packages than when it was built: idna 99 for ": upgrade_a_package,
    "its Python /nowhere/python is gone; once ": take_its_python_away,
    "not built; snakemake --force ": cut_its_record,
}
"""The message about a spoilt environment -> the function that spoils it."""


@pytest.mark.long
@pytest.mark.timeout(600)  # it builds and trains again and again
def test_an_environment_that_is_gone_is_built_again_and_one_that_is_spoilt_trains_nothing(
    place, monkeypatch, tmp_path
):
    place.measure()
    environment, before = place.built(), place.records()
    shutil.rmtree(environment)
    place.train(repeats=2)
    assert place.planned(MEASURED) == {"environment": 1, "train": 2, "measure": 1}
    with monkeypatch.context() as nowhere:
        nowhere.setenv("UV_OFFLINE", "1")
        nowhere.setenv("UV_CACHE_DIR", str(place.folder / "cache"))
        assert "envs/stand-in.txt: cannot be installed" in place.refused(MEASURED)
    place.measure()  # a build that failed has cost nothing
    assert place.built() == environment
    assert before.items() <= place.records().items()
    place.train(repeats=3)
    before = place.records()
    for line, spoil in SPOILT.items():
        whole = shutil.copytree(environment, tmp_path / "whole", symlinks=True)
        spoil(environment)
        assert f".envs/{environment.name}: {line}" in place.refused(MEASURED, "--retries", "0")
        (environment / "environment.json").unlink()
        assert place.planned(MEASURED)["environment"] == 1
        shutil.rmtree(environment)
        whole.rename(environment)
    place.measure()
    assert before.items() < place.records().items()


@pytest.mark.long
def test_a_changed_recipe_reruns_the_runs_of_its_systems_alone_and_the_same_one_none(place):
    described = place.folder / "workflow/systems/stand-in/system.yaml"
    lock = place.folder / "envs/stand-in.txt"
    (described.parents[1] / OTHER).mkdir()
    shutil.copy(described, described.parents[1] / OTHER)
    shutil.copy(lock, lock.with_name(f"{OTHER}.txt"))
    place.train(1, OTHER)
    place.measure()
    before, old = place.records(), place.built()

    built = f".envs/{old.name}/environment.json"
    again = (MEASURED, built, "--forcerun", built)
    assert place.planned(*again) == {"environment": 1, "train": 1, "measure": 1}
    place.made(*again)
    assert place.planned(MEASURED) == {}
    assert place.records() == before

    asked = yaml.safe_load(described.read_text())
    changed = {"cpu": asked["locks"]["cpu"] | {"packages": ["numpy>=1"]}}
    changes = [
        (described.with_name("uv.toml"), "no-build = true\n"),
        (described, yaml.safe_dump(asked | {"locks": changed})),
        (lock, f"# again\n{lock.read_text()}"),
    ]
    for file, text in changes:
        kept = file.read_text() if file.exists() else ""
        file.write_text(text)
        assert place.planned(MEASURED) == {"environment": 1, "train": 1, "measure": 1}, file
        if file != lock:
            file.write_text(kept)
    place.measure()
    assert (old / "environment.json").exists()
    same = {path for path, record in place.records().items() if record == before[path]}
    assert same == {f"results/runs/small/{OTHER}/1n1g/1/run.json"}


def python_in(folder: Path) -> str:
    """A Python in a folder, with the packages of the one that tests."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "of_tests.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    return str(folder / "bin/python")


@pytest.mark.long
def test_a_python_by_whose_path_no_script_can_be_started_is_refused(tmp_path):
    place = new_place(tmp_path / "place")
    place.python = python_in(tmp_path / ODD_NAME / ".venv")
    assert f"{place.python}: Snakemake starts no scripts by this path" in place.refused("-n")


@pytest.mark.parametrize(("name", "what"), [("a:b", "a colon"), ("a\nb", "a line break")])
def test_a_folder_that_cannot_work_is_refused_in_one_line(name, what, tmp_path):
    answer = new_place(tmp_path / name).snakemake("-n")
    assert answer.returncode != 0
    line = answer.stdout.splitlines()[-1]
    assert line.startswith("reperf: ")
    assert line.endswith(f"{what} in the path of the work folder; allowed: none")
    assert "Traceback" not in answer.stdout


@pytest.mark.long
def test_a_report_is_made_where_nothing_but_python_is_installed(begun, place, tmp_path):
    place.take_over(begun)
    (tmp_path / "bin").mkdir()
    base = Path(sys.base_prefix, "bin", f"python{HERE}")
    # Without a shell and `which`, Snakemake's executor for Slurm cannot be loaded.
    needed = {"sh": "/bin/sh", "which": shutil.which("which")}
    for name, program in {f"python{HERE}": base, "python3": base, **needed}.items():
        (tmp_path / "bin" / name).symlink_to(program)
    place.path = str(tmp_path / "bin")
    place.made()
    for record in place.records().values():
        assert json.loads(record)["status"] == "ok"
        assert json.loads(record)["git_commit"] is None


class TestMake:
    @pytest.fixture
    def checkout(self, tmp_path: Path) -> Path:
        """A checkout whose Python needs no package but uv."""
        folder = tmp_path / "a b" / "reperf it's"
        new_benchmark(folder, tmp_path)
        needed = (ROOT / "requirements.txt").read_text().splitlines()
        (folder / "requirements.txt").write_text(
            "\n".join(line for line in needed if line.startswith("uv==")) + "\n"
        )
        return folder

    @staticmethod
    def make(folder: Path, *arguments: str) -> str:
        answer = subprocess.run(
            ["make", f"PYTHON={sys.executable}", *arguments],
            cwd=folder,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert answer.returncode == 0, answer.stdout
        return answer.stdout

    @staticmethod
    def library_of(folder: Path) -> str:
        ask = "from importlib.util import find_spec; print(find_spec('reperf').origin)"
        command = [folder / ".venv/bin/python", "-E", "-c", ask]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    @pytest.mark.weekly
    def test_a_checkout_that_has_moved_or_whose_python_is_gone_gets_it_anew(
        self, checkout, tmp_path
    ):
        self.make(checkout, ".venv/reperf-installed")
        assert self.library_of(checkout) == str(checkout / "workflow/reperf/__init__.py")
        assert "up to date" in self.make(checkout, ".venv/reperf-installed")
        moved = checkout.rename(tmp_path / "moved")
        said = self.make(moved, ".venv/reperf-installed").splitlines()
        assert (
            sum(line.startswith("reperf: .venv was made in another folder") for line in said) == 1
        )
        assert self.library_of(moved) == str(moved / "workflow/reperf/__init__.py")
        assert "up to date" in self.make(moved, ".venv/reperf-installed")
        for python in (moved / ".venv/bin").glob("python*"):
            python.unlink()
            python.symlink_to("/nowhere/python")
        self.make(moved, ".venv/reperf-installed")
        assert self.library_of(moved) == str(moved / "workflow/reperf/__init__.py")

    def test_a_folder_that_cannot_work_is_refused_in_one_line(self, tmp_path):
        folder = tmp_path / "a:b"
        new_benchmark(folder, tmp_path)
        # Below another make, as in CI, make would tell of the folders that it enters and leaves.
        alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        answer = subprocess.run(
            ["make", "report"], cwd=folder, env=alone, check=False, capture_output=True, text=True
        )
        assert answer.returncode != 0
        (line,) = (answer.stdout + answer.stderr).splitlines()
        assert f"reperf: {folder}: a colon in the path of the work folder; allowed: none" in line
        assert not (folder / ".venv").exists()
