"""What a build of OneFlow is."""

import os

from trainers.contract.build import Build, cuda_version, found, nccl_version, said_by

_CUDA = "import oneflow.sysconfig as s; print(s.get_cuda_version() if s.with_cuda() else 0)"


def build_of(folder):
    """What the OneFlow in a folder is; its CUDA is known only if it can be imported."""
    number, _ = said_by(_CUDA)
    if number is None or not int(number):
        return Build(("oneflow",))
    libraries = found(os.path.dirname(folder), "oneflow.libs/libnccl*")
    return Build(("oneflow",), cuda_version(int(number)), nccl_version(libraries, folder))
