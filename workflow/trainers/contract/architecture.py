"""GPU architectures, as NVIDIA names what code is compiled for.

Machine code, such as sm_90, runs on GPUs of the same major compute capability and of the same or a
later minor one; PTX, such as compute_90, which the driver compiles, on all of the same or a later
capability. Code with the suffix "a" runs on that very capability, code with an "f" on that family:
the same major one. Sources: CUDA C++ Programming Guide, "Binary Compatibility" and "PTX
Compatibility"; CUDA Compiler Driver NVCC, "GPU Feature List".
"""

import re

_PARTS = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")


def parts_of(architecture):
    """Kind, major, minor and suffix of an architecture's name.

    Raises:
        ValueError: it is no such name.
    """
    match = _PARTS.fullmatch(architecture)
    if match is None:
        raise ValueError(f"got {architecture!r}; allowed: such as sm_90, sm_90a and compute_90")
    kind, major, minor, suffix = match.groups()
    return kind, int(major), int(minor), suffix


def runs_on(architecture, capability):
    """Whether code for an architecture runs on a GPU.

    Args:
        architecture: its name.
        capability: the GPU's, major and minor, such as (9, 0).
    """
    kind, major, minor, suffix = parts_of(architecture)
    if suffix == "a":
        return capability == (major, minor)
    if kind == "sm" or suffix == "f":
        return capability[0] == major and capability[1] >= minor
    return capability >= (major, minor)


def shared(one, other):
    """The architectures of two libraries on whose GPUs both have code that runs, sorted.

    Args:
        one, other: the names of what each library holds.
    """
    found = [name for name in {*one, *other} if _has(one, name) and _has(other, name)]
    return sorted(found, key=order)


def order(architecture):
    """The sort key of an architecture: machine code first, then by capability."""
    kind, major, minor, suffix = parts_of(architecture)
    return kind == "compute", major, minor, suffix


def _has(library, name):
    """Whether a library has code for all GPUs that code of this name runs on."""
    kind, major, minor, _ = parts_of(name)
    if kind == "compute":  # for GPUs to come, too
        library = [one for one in library if one.startswith("compute")]
    return any(runs_on(one, (major, minor)) for one in library)
