"""Horovod's CMake finds CUDA in the packages' folders, and an MXNet that can be loaded."""

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from reperf.systems import SYSTEMS

from tests.helpers.refusal import cannot_run

PROGRAM = SYSTEMS / "mxnet/compile/cmake_for_cuda.py"


def compiled(path: Path, code: str, *flags: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-shared", "-fPIC", "-xc", "-", "-xnone", *flags, "-o", str(path)]
    subprocess.run(command, input=code, text=True, check=True)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An environment with an MXNet that needs the driver to be loaded, and NVIDIA's packages."""
    if shutil.which("cc") is None:
        cannot_run("a C compiler, as Horovod does: apt-get install gcc libc6-dev")
    venv.create(tmp_path / "env", symlinks=True)
    folder = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "env")}))
    driver = compiled(tmp_path / "driver.so", "", "-Wl,-soname=libcuda.so.1")
    needs = "int cuDeviceGet(int *, int); void *kept[] = {cuDeviceGet};"
    linked = ("-Wl,--no-as-needed", str(driver), "-Wl,--unresolved-symbols=ignore-all")
    compiled(folder / "mxnet/libmxnet.so", needs, *linked)
    for name in ("cu13/bin/nvcc", "cu13/lib/libcudart.so.13", "nccl/lib/libnccl.so.2"):
        (folder / "nvidia" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "nvidia" / name).touch()
    (folder / "nvidia/cu13/bin/nvcc").chmod(0o755)
    return folder


def run(folder: Path, cmake: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Start the program where `cmake` is a script of the shell's."""
    programs = folder.parents[2] / "bin"
    (programs / "cmake").write_text(f"#!/bin/sh\n{cmake}\n")
    (programs / "cmake").chmod(0o755)
    return subprocess.run(
        [PROGRAM, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": f"{programs}:/usr/bin:/bin"},
    )


def loads(library: str) -> str:
    """Python that loads a library."""
    return f"import ctypes; ctypes.CDLL('{library}')"


def test_mxnet_can_be_loaded_whether_there_is_a_driver_or_not(folder):
    mxnet = loads(f"{folder}/mxnet/libmxnet.so")
    answer = run(folder, f'python3 -c "{mxnet}"', "..")
    assert answer.returncode == 0, answer.stderr
    driver, alone = (
        subprocess.run([sys.executable, "-c", load], check=False, capture_output=True)
        for load in (loads("libcuda.so.1"), mxnet)
    )
    assert driver.returncode == alone.returncode, "it needs one"


def test_cuda_is_that_of_the_packages(folder):
    cuda, nccl = folder / "nvidia/cu13", folder / "nvidia/nccl"
    told = 'echo "$@"; command -v nvcc; echo $HOROVOD_CUDA_HOME $HOROVOD_NCCL_INCLUDE'
    answer = run(folder, told, "..", "-DCMAKE_BUILD_TYPE=Debug")
    libraries = f"-DCUDA_CUDART={cuda}/lib/libcudart.so.13 -DNCCL_LIBRARY={nccl}/lib/libnccl.so.2"
    assert answer.stdout.splitlines() == [
        f".. -DCMAKE_BUILD_TYPE=Debug {libraries}",
        f"{cuda}/bin/nvcc",
        f"{cuda} {nccl}/include",
    ]


def test_what_is_configured_is_built_as_horovod_says_and_a_cmake_that_fails_fails(folder):
    assert run(folder, 'echo "$@"', "--build", ".").stdout == "--build .\n"
    assert run(folder, "exit 3", "..").returncode == 3


@pytest.mark.parametrize("compilers", [0, 2])
def test_another_number_of_compilers_than_one_is_refused(compilers, folder):
    first = folder / "nvidia/cu13/bin/nvcc"
    if compilers:
        shutil.copytree(first.parent, folder / "nvidia/cu14/bin")
    else:
        first.unlink()
    answer = run(folder, "echo reached", "..")
    assert answer.stdout == ""
    assert answer.stderr == (
        f"{folder}/nvidia: got {compilers} x cu[1-9]*/bin/nvcc; allowed: the packages of one CUDA\n"
    )
