"""Which GPUs and drivers a build runs with: NVIDIA's rules, on the builds that the locks name."""

import re
from pathlib import Path

import pytest
from reperf.builds import every_lock
from reperf.errors import ReperfError
from reperf.systems import Image, load_systems
from reperf.systems.gpu_rules import data_sheet_rate, why_not_in, why_not_on, why_not_with
from reperf.validation import checked

GPUS = {"V100": "7.0", "T4": "7.5", "A100": "8.0", "H100": "9.0", "B200": "10.0", "B300": "10.3"}
COLUMNS = ("V100", "A100", "H100", "B200")
PAGES = [Path(__file__).parents[3] / "docs" / name for name in ("systems.md", "gpu-builds.md")]
ONEFLOW = "sm_60 sm_61 sm_70 sm_75 sm_80 sm_86"


@pytest.mark.parametrize(
    ("architectures", "on"),
    [
        ("sm_70", "V100 T4"),
        ("sm_80", "A100"),
        ("sm_86", ""),
        ("sm_90", "H100"),
        ("sm_100", "B200 B300"),
        ("compute_70", "V100 T4 A100 H100 B200 B300"),
        ("compute_90", "H100 B200 B300"),
        # Of several it takes one: torch's, TensorFlow's, OneFlow's.
        ("sm_75 sm_80 sm_86 sm_90 sm_100 sm_120", "T4 A100 H100 B200 B300"),
        ("sm_60 sm_70 sm_80 sm_89 sm_90 compute_90", "V100 T4 A100 H100 B200 B300"),
        (ONEFLOW, "V100 T4 A100"),
    ],
)
def test_code_runs_where_nvidia_says(architectures, on):
    runs = [gpu for gpu, has in GPUS.items() if why_not_on(architectures.split(), has) is None]
    assert runs == on.split()


@pytest.mark.parametrize(
    ("precision", "capability", "why"),
    [
        ("tf32", "7.5", "tf32 needs compute capability 8.0; the GPU's is 7.5"),
        ("tf32", "8.0", None),
        ("fp16", "7.0", None),
        ("fp8", "8.0", "fp8 needs compute capability 8.9; the GPU's is 8.0"),
        ("fp8", "8.9", None),
    ],
)
def test_a_gpu_computes_in_what_nvidia_says(precision, capability, why):
    assert why_not_in(precision, capability) == why


HAS = "it holds code for compute capability"


@pytest.mark.parametrize(
    ("architectures", "capability", "why"),
    [
        (ONEFLOW, "9.0", f"{HAS} 6.0, 6.1, 7.0, 7.5, 8.0, 8.6 and no PTX; the GPU's is 9.0"),
        (
            "compute_103 sm_120 sm_100",
            "9.0",
            f"{HAS} 10.0, 12.0 and PTX for 10.3; the GPU's is 9.0",
        ),
        ("compute_90", "8.0", "it holds no machine code and PTX for 9.0; the GPU's is 8.0"),
        # What is not known is no reason.
        ("", "9.0", None),
        ("sm_80 another", "9.0", None),
    ],
)
def test_why_a_build_does_not_run_on_a_gpu_is_said(architectures, capability, why):
    assert why_not_on(architectures.split(), capability) == why


@pytest.mark.parametrize(
    ("driver", "least", "old"),
    [
        ("535.104.05", "580.65.06", True),
        ("580.65.06", "580.65.06", False),
        ("580.65.05", "580.65.06", True),
        ("580.126", "580.65.06", False),
        ("580.65", "580.65.06", True),
        ("1000.1", "580.65.06", False),
        ("580.65.06-open", "580.65.06", False),
        ("535.104.05-open", "580.65.06", True),
        ("470.57.02", None, False),
        ("not said", "580.65.06", False),
    ],
)
def test_drivers_are_compared_by_their_numbers(driver, least, old):
    reason = f"NVIDIA's driver is {driver}; its CUDA needs {least} or later" if old else None
    assert why_not_with(driver, least) == reason


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
        ("Tesla V100-FHHL-16GB", "fp16", None),
        ("GRID A100-20C", "bf16", None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "bf16", None),
        ("NVIDIA GH200 480GB", "bf16", None),
    ],
)
def test_a_rate_is_that_of_the_model_with_a_socket_and_of_no_other(name, precision, rate):
    assert data_sheet_rate(name, precision) == rate


@pytest.mark.parametrize(
    ("key", "value"),
    [("architectures", one) for one in ("sm90", "sm_9", "sm_90a", "ptx_90", "sm_1000", "")]
    + [("driver", "580"), ("driver", "new")],
)
def test_what_is_declared_in_another_way_is_one_line(key, value):
    declared = {"image": "me/torch", "tag": "1"}
    declared[key] = [value] if key == "architectures" else value
    with pytest.raises(ReperfError, match=rf"^image\.yaml: {key}.*: got '{value}'; .*$"):
        checked(Image, declared, "image.yaml")


def rows_of_page(header: str) -> list[list[str]]:
    """The cells of a table of the section on GPUs and of their page, without its head."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    section = text.partition("## Which GPUs")[2]
    table = section.partition(f"\n| {header} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_the_pages_say_what_each_lock_declares_and_on_which_gpus_it_runs():
    locks = {build.id: build.settings for build in every_lock().values() if build.name != "cpu"}
    told = {}
    for names, _, driver, code in rows_of_page("lock"):
        told |= dict.fromkeys(re.findall("`(.+?)`", names), (driver, tuple(code.split())))
    assert told == {name: (lock.driver, lock.architectures) for name, lock in locks.items()}
    runs = {}
    for names, *cells in rows_of_page("system"):
        for system in {load_systems()[name].host.id for name in re.findall("`(.+?)`", names)}:
            runs[f"{system}.cuda"] = ["lock" in cell for cell in cells]
            runs[f"{system}.volta"] = ["volta" in cell for cell in cells]
    assert {name: on for name, on in runs.items() if any(on)} == {
        name: [why_not_on(lock.architectures, GPUS[gpu]) is None for gpu in COLUMNS]
        for name, lock in locks.items()
    }
