"""What a build of MXNet is."""

from trainers.contract.build import Build, compiler_version, found, nccl_version

# The index has a name for each CUDA.
DISTRIBUTIONS = ("mxnet", "mxnet-cu112", "mxnet-cu110", "mxnet-cu102", "mxnet-cu101")

LOOKS_IN = "."
"""Where its loader looks for libcudnn.so.8, libnccl.so.2 and so on; see trainers.link."""


def build_of(folder):
    """What the MXNet in a folder is, without importing it: that needs a driver."""
    libraries = found(folder, "libmxnet.so")
    cuda = compiler_version(libraries, folder)
    return Build(DISTRIBUTIONS, cuda, nccl_version(libraries, folder) if cuda else None)
