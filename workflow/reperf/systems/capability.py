"""Whether a build's code runs on a GPU, and with a driver, by NVIDIA's rules.

trainers.contract.architecture has those about code.
"""

import re
from collections.abc import Sequence

from trainers.contract.architecture import parts_of, runs_on

ARCHITECTURE = r"^(sm|compute)_[1-9][0-9]{1,2}[af]?$"
"""What architectures are written as: sm_90 and sm_90a are machine code, compute_90 is PTX."""

CAPABILITY = r"^[1-9][0-9]?\.[0-9]$"
"""What a GPU's compute capability is written as, such as 9.0."""

DRIVER = r"^[0-9]+(\.[0-9]+)+$"
"""What a driver's version is written as, such as 580.65.06."""


def why_not_on(architectures: Sequence[str], capability: str) -> str | None:
    """Why a build does not run on a GPU, or None if it does.

    Args:
        architectures: of the build's code, each as ARCHITECTURE; empty: not known, and no reason.
        capability: the GPU's, as CAPABILITY.
    """
    if not architectures or any(runs_on(one, _numbers(capability)) for one in architectures):
        return None
    parts = [parts_of(one) for one in architectures]
    code = [f"{major}.{minor}{suffix}" for kind, major, minor, suffix in parts if kind == "sm"]
    ptx = [f"{major}.{minor}{suffix}" for kind, major, minor, suffix in parts if kind != "sm"]
    has = f"code for compute capability {', '.join(code)}" if code else "no machine code"
    also = f"and PTX for {', '.join(ptx)}" if ptx else "and no PTX"
    return f"it holds {has} {also}; the GPU's is {capability}"


def why_not_with(driver: str, least: str | None) -> str | None:
    """Why a driver is too old for a build, or None if it is not.

    Args:
        driver: the version that is there, as DRIVER.
        least: the oldest that the build's CUDA takes; None: not known, and no reason.
    """
    # What a vendor adds to the numbers says nothing of its age.
    version = re.match(r"\d+(\.\d+)*", driver)
    if least is None or version is None or _numbers(version[0]) >= _numbers(least):
        return None
    return f"NVIDIA's driver is {driver}; its CUDA needs {least} or later"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
