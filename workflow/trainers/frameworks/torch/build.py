"""What a build of PyTorch is."""

import os

from trainers.contract.build import Build, found, library_of, nccl_inside, nccl_version, values_in


def build_of(folder):
    """What the PyTorch in a folder is, without importing it."""
    cuda = values_in(os.path.join(folder, "version.py")).get("cuda")
    if cuda is None:
        return Build(("torch",))
    # Until 1.13 it was two libraries: libtorch_cuda_cpp.so and libtorch_cuda_cu.so.
    libraries = found(folder, "lib/libtorch_cuda.so", "lib/libtorch_cuda_c*.so")
    nccl = nccl_inside(libraries) or nccl_version(library_of(folder, "libnccl.so.2"))
    return Build(("torch",), cuda, nccl, libraries)
