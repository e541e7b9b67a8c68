"""The compiler of this machine, for what compiles while it trains.

Source: torch/_inductor/config.py (cpp.cxx) and Triton's runtime/build.py: these look for g++ to
compile for a CPU, and for gcc or clang for a GPU, unless CXX or CC names another.
"""

import os
import shutil

from reperf.systems import Device, System

_COMPILERS = {"cpu": ("C++", "CXX", ("g++",)), "cuda": ("C", "CC", ("gcc", "clang"))}


def compiler_for(device: Device) -> str | None:
    """The path of the compiler that is found here; None without one."""
    _, variable, usual = _COMPILERS[device]
    names = (os.environ[variable],) if os.environ.get(variable) else usual
    return next(filter(None, map(shutil.which, names)), None)


def why_not_compiled(system: System, variant: str | None, device: Device) -> str | None:
    """Why a variant cannot compile on this machine, or None if it can or need not."""
    if variant is None or not system.variants[variant].compiles or compiler_for(device):
        return None
    kind, variable, usual = _COMPILERS[device]
    return (
        f"{system.title} with {variant} needs a {kind} compiler, and none is here: "
        f"{' or '.join(usual)}, or what {variable} names"
    )
