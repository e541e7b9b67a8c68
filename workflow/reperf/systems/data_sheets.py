"""What NVIDIA's data sheets say of a GPU's speed."""

import re

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
