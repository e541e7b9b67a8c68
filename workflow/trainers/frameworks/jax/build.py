"""What a build of JAX is."""

import os

from trainers.contract.build import Build, cuda_version, found, nccl_version, said_by

_CUDA = "from {} import _versions; print(_versions.cuda_runtime_build_version())"


def build_of(folder):
    """What the JAX in a folder is; the plugin beside it, if it has one, says for which CUDA."""
    plugins = found(os.path.dirname(folder), "jax_cuda*_plugin")
    if not plugins:
        return Build(("jax",))
    number, _ = said_by(_CUDA.format(os.path.basename(plugins[0])))
    cuda = cuda_version(int(number)) if number else None
    return Build(("jax",), cuda, nccl_version((), folder))
