#!/usr/bin/env python3
"""CMake for Horovod beside an MXNet for GPUs: HOROVOD_CMAKE in uv.cuda.toml.

uv compiles Horovod in an environment of its own, where the packages of uv.cuda.toml lie and whose
Python runs this. Horovod expects one folder with all of CUDA, as NVIDIA's installer leaves it, and
an MXNet that can be imported. Here nvcc is of one CUDA, MXNet's libraries are of another, each in
the folder of its package, and there may be no driver.
"""

import ctypes
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from glob import glob

PACKAGES = sysconfig.get_path("purelib")
NVIDIA = os.path.join(PACKAGES, "nvidia")
HEADERS = ("cublas", "cudnn", "curand", "cusolver", "nccl")
"""Whose headers MXNet's own and Horovod include; CUDA's runtime is that of nvcc."""

DRIVER = "libcuda.so.1"
NO_DEVICE = 100
"""What the driver's functions return where there is no GPU: CUDA_ERROR_NO_DEVICE."""


def main():
    cuda = os.path.dirname(os.path.dirname(the_only("cu[1-9]*/bin/nvcc")))
    arguments = sys.argv[1:]
    if "--build" not in arguments:
        # Packages hold libraries by their whole names alone, which CMake does not look for.
        runtime, nccl = the_only("cu[1-9]*/lib/libcudart.so.*"), the_only("nccl/lib/libnccl.so.*")
        arguments += [f"-DCUDA_CUDART={runtime}", f"-DNCCL_LIBRARY={nccl}"]
    with tempfile.TemporaryDirectory() as folder:
        if not has_driver():
            make_driver(os.path.join(folder, DRIVER))
        headers = [os.path.join(NVIDIA, name, "include") for name in HEADERS]
        libraries = [*sorted(glob(os.path.join(NVIDIA, "*/lib"))), folder]
        variables = {
            "HOROVOD_CUDA_HOME": cuda,
            "HOROVOD_NCCL_INCLUDE": headers[-1],
            # Before an nvcc of the machine's, which is of any CUDA.
            "PATH": os.pathsep.join((os.path.join(cuda, "bin"), os.environ["PATH"])),
            "CPLUS_INCLUDE_PATH": os.pathsep.join(headers),
            "LD_LIBRARY_PATH": os.pathsep.join(libraries),
        }
        sys.exit(subprocess.call(["cmake", *arguments], env=dict(os.environ, **variables)))


def the_only(pattern):
    """The file in NVIDIA's packages that matches a pattern."""
    paths = glob(os.path.join(NVIDIA, pattern))
    if len(paths) != 1:
        sys.exit(f"{NVIDIA}: got {len(paths)} x {pattern}; allowed: the packages of one CUDA")
    return paths[0]


def has_driver():
    """Whether NVIDIA's driver is here, without which MXNet cannot be imported."""
    try:
        ctypes.CDLL(DRIVER)
    except OSError:
        return False
    return True


def make_driver(path):
    """Make a library with those functions of the driver that MXNet names; none finds a GPU.

    Horovod asks the imported MXNet only for its version, its features and where it lies.
    """
    mxnet = os.path.join(PACKAGES, "mxnet/libmxnet.so")
    lacking = subprocess.check_output(["nm", "-D", "--undefined-only", mxnet]).decode()
    names = sorted(set(re.findall(r"\bcu[A-Z]\w+", lacking)))
    code = "".join(f"int {name}(void) {{ return {NO_DEVICE}; }}\n" for name in names)
    compiler = ["cc", "-shared", "-fPIC", f"-Wl,-soname={DRIVER}", "-xc", "-", "-o", path]
    subprocess.run(compiler, input=code.encode(), check=True)


if __name__ == "__main__":
    main()
