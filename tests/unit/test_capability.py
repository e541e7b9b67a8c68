"""Which GPUs and drivers a build runs with: NVIDIA's rules, on the builds that the locks name."""

import re
from pathlib import Path

import pytest
from reperf.systems import load_systems
from reperf.systems.capability import (
    ARCHITECTURE,
    CAPABILITY,
    DRIVER,
    why_not_on,
    why_not_with,
)
from trainers.contract.architecture import runs_on, shared

GPUS = {"V100": "7.0", "T4": "7.5", "A100": "8.0", "H100": "9.0", "B200": "10.0", "B300": "10.3"}
COLUMNS = ("V100", "A100", "H100", "B200")
PAGE = Path(__file__).parents[2] / "docs/systems.md"
LOCKS = Path(__file__).parents[2] / "envs"
TORCH = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"
TENSORFLOW = "sm_60 sm_70 sm_80 sm_89 sm_90 compute_90"
ONEFLOW = "sm_60 sm_61 sm_70 sm_75 sm_80 sm_86"


@pytest.mark.parametrize(
    ("architecture", "on"),
    [
        ("sm_70", "V100 T4"),
        ("sm_75", "T4"),
        ("sm_80", "A100"),
        ("sm_86", ""),
        ("sm_90", "H100"),
        ("sm_90a", "H100"),
        ("sm_100", "B200 B300"),
        ("sm_100a", "B200"),
        ("sm_100f", "B200 B300"),
        ("sm_103", "B300"),
        ("sm_120", ""),
        ("compute_70", "V100 T4 A100 H100 B200 B300"),
        ("compute_90", "H100 B200 B300"),
        ("compute_90a", "H100"),
        ("compute_100f", "B200 B300"),
        ("compute_103", "B300"),
    ],
)
def test_code_runs_where_nvidia_says(architecture, on):
    assert [gpu for gpu, has in GPUS.items() if runs_on(architecture, of(has))] == on.split()


def of(capability: str) -> tuple[int, ...]:
    return tuple(map(int, capability.split(".")))


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("sm_70 sm_80 sm_86", "sm_80 sm_86", "sm_80 sm_86"),
        ("sm_70 sm_80", "sm_75", "sm_75"),
        ("sm_80 sm_90", "sm_80 compute_80", "sm_80 sm_90"),
        ("sm_90 compute_90", "sm_80 compute_80", "sm_90 compute_90"),
        ("sm_90 compute_90", "sm_90", "sm_90"),
        ("sm_70", "sm_80", ""),
    ],
)
def test_two_libraries_train_together_where_both_have_code(one, other, both):
    assert shared(one.split(), other.split()) == both.split()
    assert shared(other.split(), one.split()) == both.split()
    if both:
        for gpu in GPUS.values():
            alone = [why_not_on(names.split(), gpu) is None for names in (one, other, both)]
            assert alone[2] == (alone[0] and alone[1])


@pytest.mark.parametrize(
    ("architectures", "on"),
    [
        (TORCH, "T4 A100 H100 B200 B300"),
        (TENSORFLOW, "V100 T4 A100 H100 B200 B300"),
        (ONEFLOW, "V100 T4 A100"),
    ],
)
def test_a_build_runs_where_one_of_its_architectures_does(architectures, on):
    runs = [gpu for gpu, has in GPUS.items() if why_not_on(architectures.split(), has) is None]
    assert runs == on.split()


def test_why_a_build_does_not_run_on_a_gpu_is_said():
    assert why_not_on(ONEFLOW.split(), "9.0") == (
        "it holds code for compute capability 6.0, 6.1, 7.0, 7.5, 8.0, 8.6 and no PTX; "
        "the GPU's is 9.0"
    )
    assert why_not_on(["sm_100a", "compute_103f"], "9.0") == (
        "it holds code for compute capability 10.0a and PTX for 10.3f; the GPU's is 9.0"
    )
    assert why_not_on(["compute_90"], "8.0") == (
        "it holds no machine code and PTX for 9.0; the GPU's is 8.0"
    )


def test_what_is_not_known_is_no_reason():
    assert why_not_on([], "9.0") is None
    assert why_not_with("470.57.02", None) is None
    assert why_not_with("not said", "580.65.06") is None


@pytest.mark.parametrize(
    ("driver", "least", "old"),
    [
        ("535.104.05", "580.65.06", True),
        ("580.65.06", "580.65.06", False),
        ("580.65.05", "580.65.06", True),
        ("580.126", "580.65.06", False),
        ("580.65", "580.65.06", True),
        ("1000.1", "580.65.06", False),
        ("450.80.02", "450.80.02", False),
        ("580.65.06-open", "580.65.06", False),
        ("535.104.05-open", "580.65.06", True),
    ],
)
def test_drivers_are_compared_by_their_numbers(driver, least, old):
    reason = f"NVIDIA's driver is {driver}; its CUDA needs {least} or later" if old else None
    assert why_not_with(driver, least) == reason


@pytest.mark.parametrize("name", ["sm90", "sm_9", "sm_90b", "ptx_90", "sm_1000", ""])
def test_another_name_is_no_architecture(name):
    assert not re.fullmatch(ARCHITECTURE, name)


def test_what_is_read_and_written_has_the_patterns():
    for name in f"{TORCH} {TENSORFLOW} sm_90a sm_103f".split():
        assert re.fullmatch(ARCHITECTURE, name)
    assert all(re.fullmatch(CAPABILITY, one) for one in GPUS.values())
    assert re.fullmatch(DRIVER, "580.65.06")


def rows_of_page(header: str) -> list[list[str]]:
    """The cells of a table of the page's section on GPUs, without its head."""
    section = PAGE.read_text(encoding="utf-8").partition("## Which GPUs")[2]
    table = section.partition(f"\n| {header} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_the_page_says_of_each_lock_on_which_gpus_it_runs():
    runs = {}
    for names, _, driver, code in rows_of_page("lock"):
        assert re.fullmatch(DRIVER, driver)
        on = [why_not_on(code.split(), GPUS[gpu]) is None for gpu in COLUMNS]
        runs |= dict.fromkeys(re.findall("`(.+?)`", names), on)
    told = {}
    for names, *cells in rows_of_page("system"):
        for system in {load_systems()[name].host.id for name in re.findall("`(.+?)`", names)}:
            told[f"{system}.cuda"] = ["lock" in cell for cell in cells]
            told[f"{system}.volta"] = ["volta" in cell for cell in cells]
    assert {name: on for name, on in told.items() if any(on)} == runs
    assert {f"{name}.txt" for name in runs} == {
        path.name for path in LOCKS.glob("*.*.txt") if "overlay" not in path.name
    }
