"""Link CUDA's libraries to where a framework looks: python -m trainers.link mxnet

Some frameworks know nothing of NVIDIA's packages: they ask the loader, which looks beside their own
libraries. Others are left as they are.
"""

import argparse
import os

from trainers.builds import FRAMEWORKS
from trainers.contract.build import folder_of, found

LOOKS_IN = {"mxnet": ".", "paddle": "libs"}
"""Where, in its own folder, a framework's loader looks for libcudnn.so, libnccl.so and so on."""


def link(folder, beside):
    """Link each of CUDA's libraries, by its name with a version and without; returns the names."""
    there = os.path.join(folder, beside)
    names = []
    for path in found(os.path.dirname(folder), "nvidia/*/lib/lib*.so*"):
        name = os.path.basename(path)
        for alias in {name, name.split(".so")[0] + ".so"}:
            target = os.path.join(there, alias)
            if os.path.islink(target):
                os.remove(target)
            os.symlink(os.path.relpath(path, there), target)
            names.append(alias)
    return sorted(names)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("framework", choices=FRAMEWORKS)
    name = parser.parse_args().framework
    folder, beside = folder_of(name), LOOKS_IN.get(name)
    names = link(folder, beside) if folder and beside else []
    print("linked {} of CUDA's libraries".format(len(names)))


if __name__ == "__main__":
    main()
