"""What an environment or an image holds, asked from inside by real Pythons."""

import json
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest
from reperf.builds.inside import BuildPython
from reperf.systems import TRAINERS
from trainers.inside import FRAMEWORKS
from trainers.link import link, main

from tests.helpers.refusal import refused_in_one_line
from tests.helpers.written_files import write

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


def test_python_packages_and_system_are_told_and_those_that_an_overlay_adds(tmp_path):
    said = asked(sys.executable)
    assert said["python"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")
    assert said["executable"] == sys.executable
    assert said["packages"]["numpy"] == np.__version__
    assert said["libc"].startswith("glibc ")
    assert said["overlay"] == {}
    venv.create(tmp_path / "overlay", system_site_packages=True, symlinks=True)
    (packages,) = tmp_path.glob("overlay/lib/python3*/site-packages")
    metadata = "Metadata-Version: 2.1\nName: What_it.lacks\nVersion: 1.0\n"
    write(packages / "what_it.lacks-1.0.dist-info/METADATA", metadata)
    said = asked(tmp_path / "overlay/bin/python")
    added = {"what-it-lacks": "1.0"}
    assert said["overlay"] == added
    assert said["packages"].items() > added.items(), "and those beneath it"
    # An environment of its own has no overlay.
    settings = tmp_path / "overlay/pyvenv.cfg"
    settings.write_text(settings.read_text().replace("packages = true", "packages = false"))
    said = asked(tmp_path / "overlay/bin/python")
    assert (said["packages"], said["overlay"]) == (added, {})


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
    python = write(tmp_path / "python3", f"#!/bin/sh\n{says}\n", 0o755)
    with refused_in_one_line(f"the image: its Python {complaint}"):
        BuildPython([str(python)], "the image").contents("torch")


def torch(cuda: str | None, init: str = "") -> dict[str, str | bytes]:
    """A package that is laid out as PyTorch is."""
    return {
        "torch/__init__.py": f"{init}\nfrom torch import _C\nfrom torch.version import __version__",
        "torch/version.py": f"__version__ = '9.1'\ncuda = {cuda!r}\n",
        "torch/_C.py": "def _cuda_getArchFlags(): return 'sm_80 sm_90'\n",
        "torch/lib/libtorch_cuda.so": b"code\0" + NCCL,
    }


NO_DRIVER = "import ctypes; ctypes.CDLL('libcuda.so.none')"
CRASH = "import os; print('so far', flush=True); os.abort()"
NVRTC = "int nvrtcVersion(int *major, int *minor) { *major = 11; *minor = 8; return 0; }"
MXNET = {"mxnet/__init__.py": "__version__ = '9.1'\n"}
OF_NCCL = "int ncclGetVersion(int *number) { *number = 22907; return 0; }"
JAX = {"jax/__init__.py": "__version__ = '9.1'\n", "nvidia/nccl/lib/libnccl.so.2": OF_NCCL}
PLUGIN = "def cuda_runtime_build_version(): return 13000\n"
TENSORFLOW = (
    "build_info = {'is_cuda_build': True, 'cuda_version': '12.5.1', "
    "'cuda_compute_capabilities': ['sm_60', 'compute_90']}\n"
)
BOTH = ["sm_80", "sm_90"]


@pytest.mark.parametrize(
    ("framework", "files", "version", "cuda", "nccl", "architectures", "trouble"),
    [
        ("torch", {}, None, None, None, None, "ModuleNotFoundError: No module named 'torch'"),
        ("torch", torch("13.0"), "9.1", "13.0", "2.29.7", BOTH, ""),
        ("torch", torch(None), "9.1", None, None, [], ""),
        ("torch", torch("13.0", NO_DRIVER), None, "13.0", "2.29.7", [], "OSError: libcuda.so.none"),
        ("torch", torch("13.0", CRASH), None, "13.0", "2.29.7", [], "ended by signal 6"),
        (
            "mxnet",
            MXNET
            | {"mxnet/libmxnet.so": b"code\0libnvrtc.so.11.2\0" + NCCL}
            | {"nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2": NVRTC},
            *("9.1", "11.8", "2.29.7", [], ""),
        ),
        ("mxnet", MXNET | {"mxnet/libmxnet.so": b"for CPUs"}, "9.1", None, None, [], ""),
        (
            "jax",
            JAX | {"jax_cuda13_plugin/_versions.py": PLUGIN},
            *("9.1", "13.0", "2.29.7", [], ""),
        ),
        ("jax", JAX, "9.1", None, None, [], ""),
        (
            "tensorflow",
            {"tensorflow/__init__.py": NO_DRIVER}
            | {"tensorflow/python/platform/build_info.py": TENSORFLOW},
            *(None, "12.5.1", None, ["sm_60", "compute_90"], "OSError: libcuda.so.none"),
        ),
        # None of ours.
        ("pytest", {}, pytest.__version__, None, None, [], ""),
    ],
    ids=[
        *("none", "torch", "for CPUs", "no driver", "crash", "mxnet", "mxnet for CPUs"),
        *("jax", "jax for CPUs", "tensorflow", "another"),
    ],
)
def test_what_a_framework_was_built_for_is_read_from_its_files(
    tmp_path, *, framework, files, version, cuda, nccl, architectures, trouble
):
    """Also where it cannot be imported: then it alone could tell its architectures."""
    for name, content in files.items():
        path = write(tmp_path / name, content)
        if isinstance(content, str) and content.startswith("int "):
            command = ["cc", "-shared", "-fPIC", "-xc", "-", "-o", str(path)]
            subprocess.run(command, input=content, text=True, check=True)
    said = asked(sys.executable, framework, tmp_path)
    assert said["framework"] == version
    found = (said.get("cuda"), said.get("nccl"), said.get("architectures"))
    assert found == (cuda, nccl, architectures)
    assert (said["import_trouble"] or "").startswith(trouble)
    assert (said["import_trouble"] is None) == (trouble == "")


def test_cudas_packages_are_linked_where_a_framework_looks(tmp_path):
    names = ("cudnn/lib/libcudnn.so.8", "nccl/lib/libnccl.so.2", "cufile/lib/libcufile.so")
    write(tmp_path / "nvidia", {name: name for name in names})
    libs = write(tmp_path / "paddle/libs/libphi.so", "its own").parent
    for _ in range(2):  # the second time changes nothing
        link(str(tmp_path / "paddle"), "libs")
        assert {path.name: path.read_text() for path in libs.iterdir()} == {
            "libcudnn.so": names[0],
            "libcudnn.so.8": names[0],
            "libnccl.so": names[1],
            "libnccl.so.2": names[1],
            "libcufile.so": names[2],
            "libphi.so": "its own",
        }
    assert not (libs / "libcudnn.so").readlink().is_absolute(), "environments may be moved whole"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_nothing_is_linked_where_there_is_nothing_to_link(framework, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["link", framework])
    main()
    assert capsys.readouterr().out == "linked 0 of CUDA's libraries\n"
