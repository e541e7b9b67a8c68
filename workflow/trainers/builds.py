"""What a build of a framework is, by the folder in which its package lies."""

import os

from trainers.contract import build
from trainers.contract.build import Build, found, nccl_version


def _jax(folder):
    # The plugin beside it, if it has one, says for which CUDA.
    plugins = found(os.path.dirname(folder), "jax_cuda*_plugin")
    if not plugins:
        return Build(("jax",))
    asked = "from {} import _versions; print(_versions.cuda_runtime_build_version())"
    number, _ = build.said_by(asked.format(os.path.basename(plugins[0])))
    cuda = build.cuda_version(int(number)) if number else None
    return Build(("jax",), cuda, nccl_version((), folder))


def _mxnet(folder):
    # Importing it needs a driver. The index has a name for each CUDA.
    names = ("mxnet", "mxnet-cu112", "mxnet-cu110", "mxnet-cu102", "mxnet-cu101")
    libraries = found(folder, "libmxnet.so")
    cuda = build.compiler_version(libraries, folder)
    return Build(names, cuda, nccl_version(libraries, folder) if cuda else None)


def _oneflow(folder):
    # Its CUDA is known only if it can be imported.
    asked = "import oneflow.sysconfig as s; print(s.get_cuda_version() if s.with_cuda() else 0)"
    number, _ = build.said_by(asked)
    if number is None or not int(number):
        return Build(("oneflow",))
    libraries = found(os.path.dirname(folder), "oneflow.libs/libnccl*")
    return Build(("oneflow",), build.cuda_version(int(number)), nccl_version(libraries, folder))


def _paddle(folder):
    names = ("paddlepaddle", "paddlepaddle-gpu")
    cuda = build.values_in(os.path.join(folder, "version/__init__.py")).get("cuda_version", "False")
    if cuda == "False":
        return Build(names)
    # What it computes with moved from one into the other two.
    libraries = found(folder, "base/libpaddle.so", "libs/libphi*.so")
    return Build(names, cuda, nccl_version(libraries, folder))


def _tensorflow(folder):
    names = ("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "nvidia-tensorflow")
    folder = build.folder_of("tensorflow_core") or folder  # 1.15 lies there
    said = build.values_in(os.path.join(folder, "python/platform/build_info.py"))
    said = said.get("build_info", said)  # 1.15 says it in variables of their own
    if not said.get("is_cuda_build"):
        return Build(names)
    libraries = found(
        folder,
        "libtensorflow_cc.so.2",
        "libtensorflow_framework.so.[12]",
        "python/_pywrap_tensorflow_internal.so",
    )
    cuda = said.get("cuda_version") or said.get("cuda_version_number")
    architectures = tuple(said.get("cuda_compute_capabilities", ()))
    return Build(names, cuda, nccl_version(libraries, folder), architectures)


def _torch(folder):
    values = build.values_in(os.path.join(folder, "version.py"))
    cuda, rocm = values.get("cuda"), values.get("hip")
    if cuda is None and rocm is None:
        return Build(("torch",))
    # Until 1.13 it was two libraries: libtorch_cuda_cpp.so and libtorch_cuda_cu.so.
    libraries = found(folder, "lib/libtorch_cuda.so", "lib/libtorch_cuda_c*.so")
    # torch.cuda.get_arch_list() asks this, too, but says nothing where there is no GPU.
    names, _ = build.said_by("import torch; print(torch._C._cuda_getArchFlags())")
    # No file has the version of ROCm's library that takes NCCL's place.
    nccl = nccl_version(libraries, folder) if cuda else None
    return Build(("torch",), cuda, nccl, tuple((names or "").split()), rocm)


FRAMEWORKS = {
    "jax": _jax,
    "mxnet": _mxnet,
    "oneflow": _oneflow,
    "paddle": _paddle,
    "tensorflow": _tensorflow,
    "torch": _torch,
}
"""Framework -> what says, of its package's folder, which Build it is."""
