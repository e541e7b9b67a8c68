"""What an environment or an image holds, asked from inside by real Pythons."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from reperf.builds.inside import BuildPython
from reperf.systems import TRAINERS
from trainers.inside import FRAMEWORKS
from trainers.link import link, main

from tests.helpers.refusal import refused_in_one_line

NCCL = b"NCCL version 2.3 or later\0NCCL version 2.29.7+cuda13.2\0"
"""What a library that holds an NCCL says."""


def asked(python: Path, framework: str = "torch", *paths: Path) -> dict:
    """What one Python says of itself; it sees the trainers and some folders with packages."""
    answer = subprocess.run(
        [str(python), "-m", "trainers.inside", framework],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(map(str, (TRAINERS.parent, *paths))), "PATH": "/usr/bin:/bin"},
    )
    return json.loads(answer.stdout)


def make_torch(folder: Path, cuda: str | None, init: str = "") -> Path:
    """A package that is laid out as PyTorch is."""
    (folder / "torch/lib").mkdir(parents=True)
    imported = "from torch import _C\nfrom torch.version import __version__\n"
    (folder / "torch/__init__.py").write_text(f"{init}\n{imported}")
    (folder / "torch/version.py").write_text(f"__version__ = '9.1'\ncuda = {cuda!r}\n")
    (folder / "torch/_C.py").write_text("def _cuda_getArchFlags(): return 'sm_80 sm_90'\n")
    (folder / "torch/lib/libtorch_cuda.so").write_bytes(b"code\0" + NCCL)
    return folder


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A virtual environment above this one's Python, which has one package; returns its Python."""
    folder = tmp_path / "overlay"
    venv = [sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", str(folder)]
    subprocess.run(venv, check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (packages / "what_it.lacks-1.0.dist-info").mkdir()
    metadata = packages / "what_it.lacks-1.0.dist-info/METADATA"
    metadata.write_text("Metadata-Version: 2.1\nName: What_it.lacks\nVersion: 1.0\n")
    return folder / "bin/python"


def test_python_packages_and_system_are_told_even_without_the_framework():
    said = asked(sys.executable)
    assert said["python"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")
    assert said["executable"] == sys.executable
    assert said["packages"]["numpy"] == np.__version__
    assert said["libc"].startswith("glibc ")
    assert said["overlay"] == {}
    trouble = "ModuleNotFoundError: No module named 'torch'"
    assert (said["framework"], said["import_trouble"]) == (None, trouble)


def test_the_packages_that_an_overlay_adds_are_told_from_the_rest(venv):
    said = asked(venv)
    assert said["overlay"] == {"what-it-lacks": "1.0"}
    assert said["packages"].items() >= {"what-it-lacks": "1.0"}.items()
    assert len(said["packages"]) > 1, "those beneath it"
    # An environment of its own has no overlay.
    settings = venv.parents[1] / "pyvenv.cfg"
    settings.write_text(settings.read_text().replace("packages = true", "packages = false"))
    said = asked(venv)
    assert (said["packages"], said["overlay"]) == ({"what-it-lacks": "1.0"}, {})


@pytest.mark.parametrize(
    ("says", "complaint"),
    [
        ("echo 3.6", "reports version '3.6'; allowed: 3.7 or later"),
        ("echo a banner; echo 2.7", "reports version '2.7'; allowed: 3.7 or later"),
        ("echo no Python", "reports version 'no Python'; allowed: 3.7 or later"),
        ("true", "reports version ''; allowed: 3.7 or later"),
        ("echo 3.7", "does not say what is there: got '3.7"),
        ("exit 3", "does not start: exit 3"),
    ],
)
def test_a_python_below_3_7_and_what_is_none_are_refused(tmp_path, says: str, complaint: str):
    # A real Python 3.6 is not to be had; what it says of its own decides.
    (tmp_path / "python3").write_text(f"#!/bin/sh\n{says}\n")
    (tmp_path / "python3").chmod(0o755)
    with refused_in_one_line(f"the image: its Python {complaint}"):
        BuildPython([str(tmp_path / "python3")], "the image").contents("torch")


def test_what_a_framework_was_built_for_is_read_from_its_files(tmp_path):
    said = asked(sys.executable, "torch", make_torch(tmp_path, "13.0"))
    assert said.items() >= {
        ("framework", "9.1"),
        ("cuda", "13.0"),
        ("nccl", "2.29.7"),
        ("import_trouble", None),
    }
    assert said["architectures"] == ["sm_80", "sm_90"]


@pytest.mark.parametrize(
    ("init", "trouble"),
    [
        ("import ctypes; ctypes.CDLL('libcuda.so.none')", "OSError: libcuda.so.none: cannot open"),
        ("import os; print('so far', flush=True); os.abort()", "ended by signal 6"),
    ],
    ids=["no driver", "crash"],
)
def test_a_framework_that_cannot_be_imported_is_described_all_the_same(init, trouble, tmp_path):
    said = asked(sys.executable, "torch", make_torch(tmp_path, "13.0", init))
    assert said["import_trouble"].startswith(trouble)
    assert said["framework"] is None
    assert (said["cuda"], said["nccl"]) == ("13.0", "2.29.7")
    assert said["architectures"] == [], "only it itself can tell"


def test_a_build_for_cpus_has_neither_cuda_nor_architectures(tmp_path):
    said = asked(sys.executable, "torch", make_torch(tmp_path, None))
    assert (said["framework"], said["cuda"], said["nccl"]) == ("9.1", None, None)
    assert said["architectures"] == []


def compiled(path: Path, code: str) -> None:
    """Make a library."""
    path.parent.mkdir(parents=True)
    command = ["cc", "-shared", "-fPIC", "-xc", "-", "-o", str(path)]
    subprocess.run(command, input=code, text=True, check=True)


def test_mxnet_is_for_the_cuda_whose_compiler_it_loads(tmp_path):
    version = "int nvrtcVersion(int *major, int *minor) { *major = 11; *minor = 8; return 0; }"
    compiled(tmp_path / "nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2", version)
    (tmp_path / "mxnet").mkdir()
    (tmp_path / "mxnet/__init__.py").write_text("__version__ = '9.1'\n")
    for content, cuda, nccl in (
        (b"code\0libnvrtc.so.11.2\0" + NCCL, "11.8", "2.29.7"),
        (b"code for CPUs alone", None, None),
    ):
        (tmp_path / "mxnet/libmxnet.so").write_bytes(content)
        said = asked(sys.executable, "mxnet", tmp_path)
        assert (said["cuda"], said["nccl"]) == (cuda, nccl)


def test_jax_is_for_the_cuda_of_the_plugin_beside_it(tmp_path):
    version = "int ncclGetVersion(int *number) { *number = 22907; return 0; }"
    compiled(tmp_path / "nvidia/nccl/lib/libnccl.so.2", version)
    for folder, module, content in (
        ("jax", "__init__", "__version__ = '9.1'\n"),
        ("jax_cuda13_plugin", "_versions", "def cuda_runtime_build_version(): return 13000\n"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{module}.py").write_text(content)
    said = asked(sys.executable, "jax", tmp_path)
    assert (said["framework"], said["cuda"], said["nccl"]) == ("9.1", "13.0", "2.29.7")
    (tmp_path / "jax_cuda13_plugin").rename(tmp_path / "elsewhere")
    said = asked(sys.executable, "jax", tmp_path)
    assert (said["framework"], said["cuda"], said["nccl"]) == ("9.1", None, None)


def test_tensorflow_says_its_architectures_in_a_file(tmp_path):
    (tmp_path / "tensorflow/python/platform").mkdir(parents=True)
    (tmp_path / "tensorflow/__init__.py").write_text("import ctypes; ctypes.CDLL('libcuda.so.0')")
    (tmp_path / "tensorflow/python/platform/build_info.py").write_text(
        "build_info = {'is_cuda_build': True, 'cuda_version': '12.5.1', "
        "'cuda_compute_capabilities': ['sm_60', 'compute_90']}\n"
    )
    said = asked(sys.executable, "tensorflow", tmp_path)
    assert (said["cuda"], said["architectures"]) == ("12.5.1", ["sm_60", "compute_90"])


def test_of_a_framework_that_is_none_of_ours_only_the_version_is_known():
    said = asked(sys.executable, "pytest")
    assert said["framework"] == pytest.__version__
    assert (said["cuda"], said["architectures"]) == (None, [])


def test_cudas_packages_are_linked_where_a_framework_looks(tmp_path):
    for name in ("cudnn/lib/libcudnn.so.8", "nccl/lib/libnccl.so.2", "cufile/lib/libcufile.so"):
        (tmp_path / "nvidia" / name).parent.mkdir(parents=True)
        (tmp_path / "nvidia" / name).write_text(name)
    libs = tmp_path / "paddle/libs"
    libs.mkdir(parents=True)
    (libs / "libphi.so").write_text("its own")
    for _ in range(2):  # the second time changes nothing
        link(str(tmp_path / "paddle"), "libs")
        there = {path.name: path.read_text() for path in libs.iterdir()}
        assert there == {
            "libcudnn.so": "cudnn/lib/libcudnn.so.8",
            "libcudnn.so.8": "cudnn/lib/libcudnn.so.8",
            "libnccl.so": "nccl/lib/libnccl.so.2",
            "libnccl.so.2": "nccl/lib/libnccl.so.2",
            "libcufile.so": "cufile/lib/libcufile.so",
            "libphi.so": "its own",
        }
    assert not (libs / "libcudnn.so").readlink().is_absolute(), "environments may be moved whole"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_nothing_is_linked_where_there_is_nothing_to_link(framework, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["link", framework])
    main()
    assert capsys.readouterr().out == "linked 0 of CUDA's libraries\n"
