"""Environments that are there: how each form of them starts, and what is in it."""

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from reperf.builds import Built, build_for, why_not_as_found
from reperf.builds.environment_build import build_site
from reperf.builds.site_python import Listed, look, words_of
from reperf.config import SiteEnvironment, load_report
from reperf.host import Site
from reperf.machine import check_named_builds
from reperf.systems import TRAINERS, load_systems
from reperf.training.start import why_nodes_differ

from tests.helpers.refusal import cannot_run, refused_in_one_line
from tests.helpers.small_benchmark import SMALL
from tests.helpers.written_files import write

PYTORCH = load_systems()["pytorch"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A virtual environment with packages that are called torch and numpy."""
    folder = tmp_path / "pytorch-9.1"
    venv.create(folder, symlinks=True)
    for name, version in (("torch", "9.1+cpu"), ("numpy", "3.0")):
        install(folder, name, version)
    return folder


def install(folder: Path, name: str, version: str) -> None:
    """Have an environment say that it has a package."""
    (packages,) = folder.glob("lib/python3*/site-packages")
    write(packages / name / "__init__.py", f"__version__ = '{version}'\n")
    write(packages / f"{name}.dist-info/METADATA", f"Name: {name}\nVersion: {version}\n")


def seen(**named: object) -> Listed:
    return look(SiteEnvironment(**named), PYTORCH)


def test_a_folder_its_python_and_a_line_that_activates_it_are_one_environment(folder, monkeypatch):
    # reperf's own Python, which people activate, is not the one that is meant.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    by_path = seen(python=folder)
    assert by_path.packages == {"torch": "9.1+cpu", "numpy": "3.0"}
    assert by_path.python.startswith("3.")
    assert by_path.executable == str(folder / "bin/python")
    others = (
        {"python": folder / "bin/python"},
        {"before": f"source {folder}/bin/activate"},
        {"before": f"PATH=$PATH:{folder}/bin"},
        {"python": folder, "before": "export LOADED=yes"},
    )
    for named in others:
        assert seen(**named).digest == by_path.digest, named
    assert seen(**others[-1]).variables["LOADED"] == "yes"
    install(folder, "numpy", "3.1")
    assert seen(python=folder).digest != by_path.digest


def test_a_conda_prefix_has_its_libraries_too(folder, tmp_path):
    """Its Python is a copy with a standard library of its own, and nothing activates it."""
    prefix, python = tmp_path / "conda env", f"python3.{sys.version_info.minor}"
    library = prefix / "lib" / python
    library.mkdir(parents=True)
    for entry in Path(os.__file__).parent.iterdir():
        if entry.name != "site-packages":
            (library / entry.name).symlink_to(entry)
    write(prefix / "bin/python", Path(sys.executable).resolve().read_bytes(), 0o755)
    shutil.copytree(folder / "lib" / python / "site-packages", library / "site-packages")
    installed = ("numpy-3.0-py312h0_0", "libblas-3.9.0-34_h1_openblas", "nvidia-nccl-2.29-h5_0")
    write(prefix / "conda-meta", {"history": "", **{f"{name}.json": "{}" for name in installed}})
    found = seen(python=prefix)
    assert found.executable == str(prefix / "bin/python")
    libraries = {"libblas": "3.9.0 34_h1_openblas", "nvidia-nccl": "2.29 h5_0"}
    assert found.packages == libraries | {"torch": "9.1+cpu", "numpy": "3.0"}
    # The same version of libblas, built with another BLAS.
    blas = prefix / "conda-meta/libblas-3.9.0-34_h1_openblas.json"
    blas.rename(blas.with_name("libblas-3.9.0-34_h2_mkl.json"))
    assert seen(python=prefix).digest != found.digest


def test_modules_are_loaded_in_their_order(folder, tmp_path, monkeypatch, capfd):
    if not Path("/usr/share/modules/init/bash").exists():
        cannot_run("environment-modules, by apt-get install environment-modules")
    cuda = "#%Module\nsetenv CUDA_HOME /opt/cuda\n"
    pytorch = f"#%Module\nprereq cuda\nprepend-path PATH {folder}/bin\n"
    write(tmp_path / "modules", {"cuda": cuda, "pytorch": pytorch})
    monkeypatch.setenv("MODULEPATH", str(tmp_path / "modules"))
    found = seen(modules=("cuda", "pytorch"))
    assert found.executable == str(folder / "bin/python")
    assert found.variables["CUDA_HOME"] == "/opt/cuda"
    with refused_in_one_line("environment with modules nowhere: its Python does not start: ") as no:
        seen(modules=("nowhere",))
    assert "Unable to locate a modulefile for 'nowhere'" in str(no.value)
    assert capfd.readouterr().err == "", "the one line says it"


def test_what_reperf_sets_counts_more_than_what_a_site_sets_but_its_own_path_stays(folder):
    site = SiteEnvironment(
        python=folder, before="export PYTHONPATH=/site OMP_NUM_THREADS=9 NCCL_DEBUG=INFO"
    )
    program = "import os; print([os.environ.get(n) for n in ('PYTHONPATH', 'OMP_NUM_THREADS')])"
    variables = {"PYTHONPATH": str(TRAINERS.parent), "OMP_NUM_THREADS": "1"}
    answer = subprocess.run(
        words_of(site, ["-c", program], variables), check=True, capture_output=True, text=True
    )
    assert answer.stdout.strip() == str([f"{TRAINERS.parent}:/site", "1"])


def old_python(folder: Path) -> None:
    (folder / "bin/python").unlink()
    write(folder / "bin/python", "#!/bin/sh\necho 3.6\n", 0o755)


def without_torch(folder: Path) -> None:
    next(folder.rglob("torch")).rename(folder / "elsewhere")


def does_not_start(before: str, said: str) -> tuple[None, dict, str]:
    """The case of a line after which no Python starts."""
    named = {"python": None, "before": before}
    return None, named, f"after {before!r}: its Python does not start: {said}"


@pytest.mark.parametrize(
    ("change", "named", "said"),
    [
        (None, {"python": "nowhere"}, "nowhere: not there: /"),
        (None, {"python": "/usr/share"}, "/usr/share: no Python in its bin/, /usr/share; allowed"),
        (old_python, {}, "{folder}: its Python reports version '3.6'; allowed: 3.7 or later"),
        (without_torch, {}, "{folder}: has no torch, the framework of PyTorch, for its Python 3."),
        does_not_start("source /nowhere/env.sh", ""),
        does_not_start("PATH=/nowhere", "neither python nor python3 is on"),
    ],
)
def test_an_environment_that_does_not_do_is_one_line_before_anything_is_planned(
    folder, change, named, said
):
    if change:
        change(folder)
    asked = {"environment": {"python": str(folder)} | named, "suites": SMALL["suites"][:1]}
    with refused_in_one_line(f"environment {said.format(folder=folder)}"):
        check_named_builds(load_report(SMALL | asked))


def test_a_build_for_cpus_is_none_for_gpus_and_one_for_rocm_is(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    build = build_for("pytorch", "cuda", environment=SiteEnvironment(python=folder))
    with refused_in_one_line(f"environment {folder}: torch 9.1+cpu is a build for CPUs; allowed"):
        build_site(build, build.folder)
    (version,) = folder.glob("lib/*/site-packages/torch")
    (version / "version.py").write_text("cuda = None\nhip = '6.4.1'\n")
    # What it lacks now is the rest of PyTorch.
    with refused_in_one_line("launcher or trainer: does not start in environment"):
        build_site(build, build.folder)


def test_an_environment_that_has_changed_since_is_refused_with_both_versions(folder):
    environment = SiteEnvironment(python=folder)
    first = seen(python=folder)
    site = Site(named=str(environment), executable=first.executable, digest=first.digest)
    built = Built(python=first.python, packages=first.packages, site=site)
    assert why_not_as_found(built, first) == ""
    planned = build_for("pytorch", "cpu", environment=environment).folder
    install(folder, "numpy", "3.1")
    assert why_not_as_found(built, seen(python=folder)) == (
        f"environment {folder}: has other packages than were planned: numpy 3.1 for 3.0"
    )
    build_for.cache_clear()
    now = build_for("pytorch", "cpu", environment=environment)
    assert re.fullmatch(r"\.envs/pytorch\.site-[0-9a-f]{8}-[0-9a-f]{8}", str(now.folder))
    with refused_in_one_line(f"environment {folder}: has changed since this call planned its runs"):
        build_site(now, planned)


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ({"executable": "/local/bin/python"}, ""),
        (None, "node2 did not say what it has"),
        (
            {"packages": {"torch": "2.9.0", "numpy": "2.0.0"}, "python": "3.12.2"},
            "node2 has other packages than node1: numpy 2.0.0 for 2.1.0, python 3.12.2 for 3.12.1",
        ),
    ],
)
def test_a_node_with_another_package_is_named(second, why):
    packages = {"torch": "2.9.0", "numpy": "2.1.0"}
    usual = {"executable": "/sw/bin/python", "is_there": True, "variables": {}}
    first = Listed(node="node1", python="3.12.1", packages=packages, **usual)
    others = [first.model_copy(update={"node": "node3"})]
    others += [first.model_copy(update={"node": "node2"} | second)] if second else []
    assert why_nodes_differ(others, first, ("node1", "node2", "node3")) == why


def test_a_lock_that_is_not_there_is_one_line():
    entry = {"system": "pytorch", "lock": "envs/nowhere.txt"}
    suites = [SMALL["suites"][0] | {"systems": [entry]}]
    with refused_in_one_line("lock: got 'envs/nowhere.txt', which does not exist; allowed: "):
        check_named_builds(load_report(SMALL | {"suites": suites}))
