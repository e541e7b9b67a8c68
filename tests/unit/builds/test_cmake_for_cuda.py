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
from tests.helpers.written_files import write

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
    libraries = ("cu13/lib/libcudart.so.13", "nccl/lib/libnccl.so.2")
    write(folder / "nvidia", dict.fromkeys(libraries, ""))
    write(folder / "nvidia/cu13/bin/nvcc", "", 0o755)
    return folder


def run(folder: Path, cmake: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Start the program where `cmake` is a script of the shell's."""
    programs = write(folder.parents[2] / "bin/cmake", f"#!/bin/sh\n{cmake}\n", 0o755).parent
    environment = {"PATH": f"{programs}:/usr/bin:/bin"}
    command = [PROGRAM, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)


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


def test_cuda_is_that_of_the_packages_and_all_else_is_as_horovod_says(folder):
    cuda, nccl = folder / "nvidia/cu13", folder / "nvidia/nccl"
    told = 'echo "$@"; command -v nvcc; echo $HOROVOD_CUDA_HOME $HOROVOD_NCCL_INCLUDE'
    libraries = f"-DCUDA_CUDART={cuda}/lib/libcudart.so.13 -DNCCL_LIBRARY={nccl}/lib/libnccl.so.2"
    assert run(folder, told, "..", "-DCMAKE_BUILD_TYPE=Debug").stdout.splitlines() == [
        f".. -DCMAKE_BUILD_TYPE=Debug {libraries}",
        f"{cuda}/bin/nvcc",
        f"{cuda} {nccl}/include",
    ]
    assert run(folder, 'echo "$@"', "--build", ".").stdout == "--build .\n"
    assert run(folder, "exit 3", "..").returncode == 3
    # Of another number of compilers than one, none is meant.
    second = shutil.copytree(cuda / "bin", folder / "nvidia/cu14/bin")
    for compilers in (2, 0):
        if not compilers:
            shutil.rmtree(second)
            shutil.rmtree(cuda / "bin")
        answer = run(folder, "echo reached", "..")
        said = f"got {compilers} x cu[1-9]*/bin/nvcc; allowed: the packages of one CUDA\n"
        assert (answer.stdout, answer.stderr) == ("", f"{folder}/nvidia: {said}")
