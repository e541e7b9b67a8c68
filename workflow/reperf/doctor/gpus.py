"""What NVML says about a node's GPUs, beyond what run records hold."""

from collections.abc import Callable, Iterator
from typing import Any

import pynvml

from reperf.doctor.diagnosis import GpuState
from reperf.machine import gpu_handles

# Clocks are also low when a GPU is idle, which is harmless, or when somebody set them so, which the
# clocks themselves show; those reasons are left out.
_HARMFUL_REASONS = {
    pynvml.nvmlClocksEventReasonSwPowerCap: "power cap",
    pynvml.nvmlClocksEventReasonHwSlowdown: "hardware slowdown",
    pynvml.nvmlClocksEventReasonSyncBoost: "sync boost",
    pynvml.nvmlClocksEventReasonSwThermalSlowdown: "heat (driver)",
    pynvml.nvmlClocksEventReasonHwThermalSlowdown: "heat (hardware)",
    pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown: "power brake",
}


def gpu_states() -> tuple[GpuState, ...]:
    """All GPUs of this machine; none where there is no NVIDIA driver."""
    with gpu_handles() as handles:
        return tuple(map(_state, handles))


def _state(gpu: Any) -> GpuState:  # noqa: ANN401 - NVML's handle
    def ask(question: Callable, *arguments: Any) -> Any:  # noqa: ANN401 - as NVML answers
        """NVML's answer; None if this GPU or driver has none."""
        try:
            return question(gpu, *arguments)
        except pynvml.NVMLError:
            return None

    ecc = ask(pynvml.nvmlDeviceGetEccMode)
    mig = ask(pynvml.nvmlDeviceGetMigMode)
    reasons = ask(pynvml.nvmlDeviceGetCurrentClocksEventReasons) or 0
    remapped = ask(pynvml.nvmlDeviceGetRemappedRows)
    processes = ask(pynvml.nvmlDeviceGetComputeRunningProcesses) or ()
    sm = pynvml.NVML_CLOCK_SM
    return GpuState(
        name=pynvml.nvmlDeviceGetName(gpu),
        sm_megahertz=ask(pynvml.nvmlDeviceGetClockInfo, sm),
        max_sm_megahertz=ask(pynvml.nvmlDeviceGetMaxClockInfo, sm),
        application_sm_megahertz=ask(pynvml.nvmlDeviceGetApplicationsClock, sm),
        default_application_sm_megahertz=ask(pynvml.nvmlDeviceGetDefaultApplicationsClock, sm),
        slowed_by=tuple(name for bit, name in _HARMFUL_REASONS.items() if reasons & bit),
        persistent=_flag(ask(pynvml.nvmlDeviceGetPersistenceMode)),
        power_limit_watts=_watts(ask(pynvml.nvmlDeviceGetEnforcedPowerLimit)),
        default_power_limit_watts=_watts(ask(pynvml.nvmlDeviceGetPowerManagementDefaultLimit)),
        ecc=_flag(ecc and ecc[0]),
        uncorrected_errors=ask(
            pynvml.nvmlDeviceGetTotalEccErrors,
            pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
            pynvml.NVML_VOLATILE_ECC,
        ),
        row_remap_pending=_flag(remapped and remapped[2]),
        row_remap_failed=_flag(remapped and remapped[3]),
        nvlinks=tuple(_links(ask)),
        mig=_flag(mig and mig[0]),
        memory_used=pynvml.nvmlDeviceGetMemoryInfo(gpu).used,
        processes=tuple(process.pid for process in processes),
    )


def _links(ask: Callable) -> Iterator[bool]:
    """Whether each NVLink is up; a GPU answers only for the links that it has."""
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        state = ask(pynvml.nvmlDeviceGetNvLinkState, link)
        if state is not None:
            yield state == pynvml.NVML_FEATURE_ENABLED


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000
