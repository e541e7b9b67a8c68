"""Whether GPU code runs on a GPU and with a driver, by NVIDIA's rules; its data sheets' rates.

Machine code, such as sm_90, runs on GPUs of the same major compute capability and of the same or a
later minor one; PTX, such as compute_90, which the driver compiles, on all of the same or a later
capability. Source: CUDA C++ Programming Guide, "Binary Compatibility" and "PTX Compatibility".
"""

import re
from collections.abc import Sequence

ARCHITECTURE = r"^(sm|compute)_([1-9][0-9]?)([0-9])$"
"""What architectures are written as: sm_90 is machine code, compute_90 is PTX."""

LEAST = {"tf32": "8.0", "bf16": "8.0", "fp8": "8.9"}
"""The least compute capability of GPUs that have a precision. Older ones compute tf32 as fp32, and
bf16, if at all, by way of it. Sources: CUDA C++ Programming Guide, "Tensor Core"; for fp8, the
requirement of torch._scaled_mm."""

DRIVER = r"^[0-9]+(\.[0-9]+)+$"  # what a driver's version is written as, such as 580.65.06


def why_not_on(architectures: Sequence[str], capability: str) -> str | None:
    """Why code does not run on a GPU of a compute capability, such as 9.0; None if it does.

    Nothing is known of code without architectures, or with one that is not written as ARCHITECTURE.
    """
    names = [name for text in architectures if (name := re.fullmatch(ARCHITECTURE, text))]
    if not names or len(names) < len(architectures):
        return None
    code, ptx = (
        sorted((int(name[2]), int(name[3])) for name in names if name[1] == kind)
        for kind in ("sm", "compute")
    )
    gpu = _numbers(capability)
    if any(least[0] == gpu[0] and least <= gpu for least in code) or any(
        least <= gpu for least in ptx
    ):
        return None
    has = f"code for compute capability {_listed(code)}" if code else "no machine code"
    also = f"and PTX for {_listed(ptx)}" if ptx else "and no PTX"
    return f"it holds {has} {also}; the GPU's is {capability}"


def why_not_in(precision: str, capability: str) -> str | None:
    """Why a GPU of a compute capability does not compute in a precision; None if it does."""
    least = LEAST.get(precision)
    if least is None or _numbers(capability) >= _numbers(least):
        return None
    return f"{precision} needs compute capability {least}; the GPU's is {capability}"


def why_not_with(driver: str, least: str | None) -> str | None:
    """Why a driver is too old for a build's CUDA; None if it is not, or if nothing is known."""
    # What a vendor adds to the numbers says nothing of its age.
    version = re.match(r"\d+(\.\d+)*", driver)
    if least is None or version is None or _numbers(version[0]) >= _numbers(least):
        return None
    return f"NVIDIA's driver is {driver}; its CUDA needs {least} or later"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _listed(capabilities: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{major}.{minor}" for major, minor in capabilities)


RATES = {
    "V100": {"fp32": 15.7e12, "16 bits": 125e12},
    "A100": {"fp32": 19.5e12, "tf32": 156e12, "16 bits": 312e12},
    "H100": {"fp32": 67e12, "tf32": 495e12, "16 bits": 989e12},
    "H200": {"fp32": 67e12, "tf32": 495e12, "16 bits": 989e12},
    "B200": {"fp32": 75e12, "tf32": 1125e12, "16 bits": 2250e12},
}
"""Floating-point operations a second of dense matrix products, by models with SXM sockets. Sources:
NVIDIA's data sheets "V100 Tensor Core GPU" (2020), "A100 Tensor Core GPU" (2022), "H100 Tensor Core
GPU" (2023), "H200 Tensor Core GPU" (2024), "HGX Platform" (2025: an eighth of the HGX B200's); the
later three print rates with sparsity, which are twice these."""
_OTHERS = {"PCIE", "NVL", "FHHL", "GRID", "MIG"}
"""Words in the names of GPUs that are slower than the model of that name, or parts of one."""


def model_of(name: str) -> str | None:
    """The model in RATES that a GPU's name gives, as "NVIDIA H100 80GB HBM3"; None: another."""
    words = set(re.split(r"[^A-Z0-9]+", name.upper()))
    return None if words & _OTHERS else next((model for model in RATES if model in words), None)


def data_sheet_rate(name: str, precision: str) -> float | None:
    """Floating-point operations a second of a GPU's matrix products, by its driver's name for it.

    None: not known. A precision of amp is fp16.
    """
    rates = RATES.get(model_of(name) or "", {})
    return rates.get("16 bits" if precision in ("fp16", "bf16", "amp") else precision)
