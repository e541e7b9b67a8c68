"""This machine: its CPUs, memory, GPUs and versions, as run records hold them."""

import os
import platform
import re
import socket
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

import psutil
import pynvml

from reperf.config import Report, topology_shape
from reperf.errors import ReperfError
from reperf.programs import answer_of
from reperf.training.record import Gpu, Host

Answer = TypeVar("Answer")


def cores() -> int:
    """Logical CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def gpus() -> tuple[Gpu, ...]:
    """The GPUs that NVML sees; none where there is no NVIDIA driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        return tuple(
            Gpu(
                name=pynvml.nvmlDeviceGetName(handle),
                uuid=pynvml.nvmlDeviceGetUUID(handle),
                memory_bytes=pynvml.nvmlDeviceGetMemoryInfo(handle).total,
            )
            for handle in handles
        )
    finally:
        pynvml.nvmlShutdown()


def resolve(report: Report) -> Report:
    """The same report, with the device decided that all of its runs train on.

    A Slurm cluster trains on its GPUs. So does this machine if it has enough for every topology: a
    report never mixes devices, because its cells could not be compared.
    """
    if report.device != "auto":
        return report
    return report.model_copy(update={"device": _best_device(report)})


def _best_device(report: Report) -> Literal["cpu", "cuda"]:
    if report.cluster is not None:
        return "cuda"
    most = max(
        (
            topology_shape(topology)[1]
            for suite in report.suites
            for topology in suite.topologies_of_runs
        ),
        default=1,
    )
    return "cuda" if len(gpus()) >= most else "cpu"


def check_fits(report: Report) -> None:
    """Refuse a report with a topology that is too large; its device must be decided.

    Raises:
        ReperfError: names the suite, the topology and what is there.
    """
    device = report.resolved_device
    if report.cluster is not None:
        nodes, devices = report.cluster.nodes, report.cluster.devices_per_node
        there = f"cluster has {nodes} nodes with {devices} devices each"
    else:
        slots = len(gpus()) if device == "cuda" else cores() // report.threads_per_device
        nodes, devices = 1, slots
        what = "GPUs" if device == "cuda" else f"times {report.threads_per_device} CPU threads"
        there = f"this machine has {slots} {what}"
    for suite in report.suites:
        for topology in suite.topologies_of_runs:
            wanted = topology_shape(topology)
            if wanted[0] > nodes or wanted[1] > devices:
                raise ReperfError(
                    f"suite {suite.name}: topology {topology} is too large: {there}; "
                    f"allowed: at most {nodes}n{devices}g"
                )


@cache
def describe_host() -> Host:
    """This machine, as a run record holds it."""
    return Host(
        hostname=socket.gethostname(),
        cpu=_cpu_name(),
        cores=cores(),
        memory_bytes=psutil.virtual_memory().total,
        os=_os_name(),
        kernel=platform.release(),
        gpus=gpus(),
        driver=_driver_version(),
        cuda=_cuda_version(),
        topology_matrix=_topology_matrix(),
    )


def _cpu_name() -> str:
    """The processor as Linux names it; libraries that know more systems take a second."""
    try:
        listed = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    found = re.search(r"^model name\s*: (.+)$", listed, re.MULTILINE)
    return found[1] if found else platform.processor()


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.platform()


def _driver_version() -> str | None:
    return _ask_nvml(pynvml.nvmlSystemGetDriverVersion)


def _cuda_version() -> str | None:
    version = _ask_nvml(pynvml.nvmlSystemGetCudaDriverVersion_v2)
    return f"{version // 1000}.{version % 1000 // 10}" if version else None


def _ask_nvml(question: Callable[[], Answer]) -> Answer | None:
    if not gpus():
        return None
    pynvml.nvmlInit()
    try:
        return question()
    finally:
        pynvml.nvmlShutdown()


def _topology_matrix() -> str | None:
    if not gpus():
        return None
    return answer_of(["nvidia-smi", "topo", "-m"])
