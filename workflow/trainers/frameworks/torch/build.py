"""What a build of PyTorch is."""

import os

from trainers.contract.build import Build, found, nccl_version, said_by, values_in


def build_of(folder):
    """What the PyTorch in a folder is; its architectures are known only if it can be imported."""
    values = values_in(os.path.join(folder, "version.py"))
    cuda, rocm = values.get("cuda"), values.get("hip")
    if cuda is None and rocm is None:
        return Build(("torch",))
    # Until 1.13 it was two libraries: libtorch_cuda_cpp.so and libtorch_cuda_cu.so.
    libraries = found(folder, "lib/libtorch_cuda.so", "lib/libtorch_cuda_c*.so")
    # torch.cuda.get_arch_list() asks this, too, but says nothing where there is no GPU.
    names, _ = said_by("import torch; print(torch._C._cuda_getArchFlags())")
    # No file has the version of ROCm's library that takes NCCL's place.
    nccl = nccl_version(libraries, folder) if cuda else None
    return Build(("torch",), cuda, nccl, tuple((names or "").split()), rocm)
