"""The rates of NVIDIA's data sheets, by the name that a GPU's driver gives."""

import pytest
from reperf.systems.gpu_rules import data_sheet_rate


@pytest.mark.parametrize(
    ("name", "precision", "rate"),
    [
        ("NVIDIA H100 80GB HBM3", "bf16", 989e12),
        ("NVIDIA H200", "amp", 989e12),
        ("NVIDIA A100-SXM4-80GB", "tf32", 156e12),
        ("Tesla V100-SXM2-16GB", "fp16", 125e12),
        ("NVIDIA B200", "bf16", 2250e12),
        ("NVIDIA H100 80GB HBM3", "fp8", None),
        ("Tesla V100-SXM2-16GB", "tf32", None),
        # Slower models, a part of a GPU, and GPUs of other boards.
        ("NVIDIA H100 PCIe", "bf16", None),
        ("NVIDIA H200 NVL", "bf16", None),
        ("Tesla V100-FHHL-16GB", "fp16", None),
        ("GRID A100-20C", "bf16", None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "bf16", None),
        ("NVIDIA GB200", "bf16", None),
        ("NVIDIA GH200 480GB", "bf16", None),
    ],
)
def test_a_rate_is_that_of_the_model_with_a_socket_and_of_no_other(name, precision, rate):
    assert data_sheet_rate(name, precision) == rate
