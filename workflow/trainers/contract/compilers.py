"""The compiler that is found here, for what compiles while it trains.

Source: torch/_inductor/config.py (cpp.cxx) and Triton's runtime/build.py: these look for g++ to
compile for a CPU, and for gcc or clang for a GPU, unless CXX or CC names another.
"""

import os
import shutil

COMPILERS = {"cpu": ("C++", "CXX", ("g++",)), "cuda": ("C", "CC", ("gcc", "clang"))}
"""Device -> the language, the variable that names another compiler, the usual ones."""


def compiler_for(device):
    """The path of the compiler for a device; None without one."""
    _, variable, usual = COMPILERS[device]
    names = (os.environ[variable],) if os.environ.get(variable) else usual
    return next(filter(None, map(shutil.which, names)), None)
