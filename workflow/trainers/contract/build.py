"""What a framework's build is, from files: some cannot be imported where there is no driver."""

import ctypes
import glob
import mmap
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from typing import NamedTuple, Optional, Tuple

_NCCL = re.compile(rb"NCCL version (\d+\.\d+\.\d+)\+cuda")
_COMPILER = re.compile(rb"(libnvrtc\.so(?:\.\d+)+)")


class Build(NamedTuple):
    distributions: Tuple[str, ...]  # the names under which package indexes have it
    cuda: Optional[str] = None  # its version, such as 13.0; None for a build without
    nccl: Optional[str] = None  # the version that it loads, or holds
    architectures: Tuple[str, ...] = ()  # such as sm_90; empty if it does not say
    rocm: Optional[str] = None  # its version, such as 6.4, whose GPUs the build calls `cuda`


def folder_of(package):
    """Where a package lies, without importing it; None if it is not installed."""
    spec = find_spec(package)
    return next(iter(spec.submodule_search_locations or ()), None) if spec else None


def found(folder, *patterns):
    """The files below a folder that match one of some patterns, in their order."""
    paths = {path for pattern in patterns for path in glob.glob(os.path.join(folder, pattern))}
    return tuple(sorted(paths))


def values_in(path):
    """What a module of plain values says, such as version.py; nothing if it is not there."""
    # It is run by itself, for importing it would import its package first.
    if not os.path.exists(path):
        return {}
    values = {"__name__": "values"}
    with open(path) as stream:
        exec(compile(stream.read(), path, "exec"), values)
    return values


def said_by(code):
    """The last line of what code says in a process of its own; None and why if that fails."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    answer = subprocess.run(
        [sys.executable, "-c", code], check=False, universal_newlines=True, **pipes
    )
    lines = answer.stdout.split("\n") if answer.returncode == 0 else answer.stderr.split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if answer.returncode < 0:
        return None, "ended by signal {}".format(-answer.returncode)
    return (None, last) if answer.returncode else (last, None)


def library_of(folder, name):
    """The path of one of NVIDIA's libraries, such as libnccl.so.2, beside a framework's folder."""
    # Where no package has it, its name, by which the loader finds the machine's.
    return next(iter(found(os.path.dirname(folder), "nvidia/*/lib/" + name)), name)


def nccl_version(libraries, folder):
    """The version of NCCL, such as 2.29.7, that libraries hold or else load; None without one."""
    inside = written_in(libraries, _NCCL)
    loaded = None if inside else _asked(library_of(folder, "libnccl.so.2"), "ncclGetVersion")
    return nccl_as_written(*loaded) if loaded else inside


def nccl_as_written(number):
    """NCCL's number of a version as it is written: 2.29.7."""
    # 2.8.4 was 2804; since then 2.9.1 is 20901.
    major, rest = divmod(number, 1000 if number < 10000 else 10000)
    return "{}.{}.{}".format(major, *divmod(rest, 100))


def compiler_version(libraries, folder):
    """The version of CUDA, such as 11.8, whose run-time compiler libraries load."""
    # CUDA's runtime itself does not say its version without a driver.
    name = written_in(libraries, _COMPILER)
    numbers = name and _asked(library_of(folder, name), "nvrtcVersion", 2)
    return "{}.{}".format(*numbers) if numbers else None


def written_in(libraries, pattern):
    """The first group of a pattern's first match in the bytes of libraries, None without one."""
    for path in libraries:
        with open(path, "rb") as stream:
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        match = pattern.search(content)
        if match:
            return match[1].decode()
    return None


def cuda_version(number):
    """CUDA's number of a version, such as 11080, as it is written: 11.8."""
    return "{}.{}".format(number // 1000, number % 1000 // 10)


def _asked(library, function, count=1):
    """The ints that a library's function writes into its arguments; None if it cannot be asked."""
    answers = [ctypes.c_int() for _ in range(count)]
    try:
        getattr(ctypes.CDLL(library), function)(*map(ctypes.byref, answers))
    except (OSError, AttributeError):
        return None
    return [answer.value for answer in answers]
