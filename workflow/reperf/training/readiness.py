"""Before the first run of a call: the cluster is ready, and this machine has nothing else to do."""

import logging
import os
import signal
import time
from collections.abc import Callable, Collection
from typing import Any

from reperf.config import Report
from reperf.errors import ReperfError
from reperf.machine import gpu_handles, visible_gpus
from reperf.records.run_record import BESIDE, UNUSABLE
from reperf.training.hosts import check_hosts
from reperf.training.slurm import cancel_left_jobs, check_allocation, check_cluster, trains

SECONDS_BETWEEN_LOOKS = 10.0
QUIET_LOOKS = 3  # so many in a row end the wait: a program that compiles pauses now and then
LOOKS_BETWEEN_LINES = 30

logger = logging.getLogger("snakemake.logging")
"""Snakemake's own: its lines come from another thread, and keep their order."""


def make_ready(report: Report, workflow: Any) -> None:  # noqa: ANN401 - Snakemake's own
    """Check the cluster; or look whether this machine is busy, and wait or go on as `on_busy` says.

    Only a call that trains checks. The work folder must be locked: jobs that a killed call has left
    in it are cancelled.
    """
    if not trains(workflow.dag):
        return
    if report.slurm:
        check = check_cluster if workflow.nodes else check_allocation
        check(report)
        cancel_left_jobs()
        return
    if report.cluster:
        check_hosts(report)
        return
    devices = set(map(report.device_of, report.suites))
    gpus = [gpu.uuid for gpu in visible_gpus(os.environ)] if "cuda" in devices else []
    begin_or_wait(report.on_busy, lambda: look(gpus))


def begin_or_wait(
    on_busy: str, look: Callable[[], tuple[str, bool]], pause: Callable[[float], None] = time.sleep
) -> None:
    """Say that the machine is busy if it is; then wait until it is not, if `on_busy` is "wait".

    `look` gives the other work in words, "" for none, and whether it makes numbers unusable.
    """
    work, spoils = look()
    if not work:
        return
    if on_busy == "go":
        then = "are not usable" if spoils else "get a mark"
        logger.warning(
            f"this machine is busy: {work}. Numbers measured beside it {then}; "
            "--config on_busy=wait waits for it to end, reperf doctor names the processes"
        )
        return
    logger.warning(f"this machine is busy: {work}; waiting until that ends, as on_busy asks")
    begun, quiet, looks = time.monotonic(), 0, 0
    # Snakemake's own handler only ends jobs. None has begun yet, so the wait would go on.
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while quiet < QUIET_LOOKS:
            pause(SECONDS_BETWEEN_LOOKS)
            work, looks = look()[0], looks + 1
            quiet = 0 if work else quiet + 1
            if work and looks % LOOKS_BETWEEN_LINES == 0:
                logger.warning(f"still waiting: {work}")
    except KeyboardInterrupt:
        raise ReperfError(f"stopped while waiting for other work to end: {work}") from None
    finally:
        signal.signal(signal.SIGTERM, former)
    minutes = (time.monotonic() - begun) / 60
    logger.warning(f"this machine is idle after {minutes:.0f} min; the runs begin")


def look(gpus: Collection[str]) -> tuple[str, bool]:
    """The other work of this machine in words, "" for none, and whether it spoils numbers."""
    from reperf.training.load import Watch  # noqa: PLC0415 - NVML's bindings are slow to import

    load = Watch(list(gpus)).load(all_descend=False)
    share, busiest = load.before or 0.0, _busiest(gpus)
    works = {
        f"other work takes {100 * share:.0f} % of the CPUs' time": share > BESIDE,
        f"{load.gpu_processes} processes compute on its GPUs": bool(load.gpu_processes),
        f"a GPU is {100 * busiest:.0f} % busy": busiest > BESIDE and not load.gpu_processes,
    }
    return " and ".join(work for work, is_so in works.items() if is_so), share > UNUSABLE


def _busiest(gpus: Collection[str]) -> float:
    """For what share of the last moments the busiest GPU computed, even for another container."""
    import pynvml  # noqa: PLC0415 - likewise

    from reperf.training.telemetry import handle_of  # noqa: PLC0415

    with gpu_handles() as there:
        try:
            handles = map(handle_of, gpus if there else ())
            rates = (pynvml.nvmlDeviceGetUtilizationRates(handle).gpu for handle in handles)
            return max(rates, default=0) / 100
        except pynvml.NVMLError:  # NVML does not say, as in MIG mode
            return 0.0
