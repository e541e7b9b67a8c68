"""What a build of PaddlePaddle is."""

import os

from trainers.contract.build import Build, found, nccl_version, values_in

DISTRIBUTIONS = ("paddlepaddle", "paddlepaddle-gpu")

LOOKS_IN = "libs"
"""Where its loader looks for libcudnn.so, libnccl.so and so on; see trainers.link."""


def build_of(folder):
    """What the Paddle in a folder is, without importing it."""
    cuda = values_in(os.path.join(folder, "version/__init__.py")).get("cuda_version", "False")
    if cuda == "False":
        return Build(DISTRIBUTIONS)
    # What it computes with moved from one into the other two.
    libraries = found(folder, "base/libpaddle.so", "libs/libphi*.so")
    return Build(DISTRIBUTIONS, cuda, nccl_version(libraries, folder))
