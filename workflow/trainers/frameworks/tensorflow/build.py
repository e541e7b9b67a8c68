"""What a build of TensorFlow is, 1.15 or 2."""

import os

from trainers.contract.build import Build, folder_of, found, nccl_version, values_in

DISTRIBUTIONS = ("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "nvidia-tensorflow")


def build_of(folder):
    """What the TensorFlow in a folder is, without importing it."""
    folder = folder_of("tensorflow_core") or folder  # 1.15 lies there
    said = values_in(os.path.join(folder, "python/platform/build_info.py"))
    said = said.get("build_info", said)  # 1.15 says it in variables of their own
    if not said.get("is_cuda_build"):
        return Build(DISTRIBUTIONS)
    libraries = found(
        folder,
        "libtensorflow_cc.so.2",
        "libtensorflow_framework.so.[12]",
        "python/_pywrap_tensorflow_internal.so",
    )
    cuda = said.get("cuda_version") or said.get("cuda_version_number")
    architectures = tuple(said.get("cuda_compute_capabilities", ()))
    return Build(DISTRIBUTIONS, cuda, nccl_version(libraries, folder), architectures)
