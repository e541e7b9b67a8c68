"""The compiler that is found here, for what compiles while it trains; and where that is kept.

Source: torch/_inductor/config.py (cpp.cxx) and Triton's runtime/build.py.
"""

import hashlib
import os
import shutil
import socket

from trainers.contract import process

COMPILERS = {"cpu": ("C++", "CXX", ("g++",)), "cuda": ("C", "CC", ("gcc", "clang"))}
"""Device -> the language, the variable that names another compiler, the usual ones."""
COMPILED = "COMPILED"
"""The environment variable that names the folder of what was compiled for other repeats."""


def compiler_for(device):
    """The path of the compiler for a device; None without one."""
    _, variable, usual = COMPILERS[device]
    names = (os.environ[variable],) if os.environ.get(variable) else usual
    return next(filter(None, map(shutil.which, names)), None)


def compiled_before(flags, rank):
    """The file of this rank's compiled program, for repeats, which differ in their seed alone.

    None: this run compiles for itself, as under a limit, where the compiler's memory counts.
    """
    folder = os.environ.get(COMPILED)
    if not folder or process.is_limited():
        return None
    same = {name: value for name, value in vars(flags).items() if name != "seed"}
    told = hashlib.sha256(repr(sorted(same.items())).encode()).hexdigest()
    return os.path.join(folder, socket.gethostname(), f"{told}-{rank}")
