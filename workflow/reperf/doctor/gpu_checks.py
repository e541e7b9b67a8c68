"""A node's GPUs: as many as runs ask for, of one kind, whole, fast and unused."""

from collections.abc import Callable, Iterator
from functools import partial

from reperf.doctor.case import NOT_THERE, Case, Verdict, each, same, usual
from reperf.doctor.diagnosis import Finding, GpuState, Level, Probe
from reperf.printed import count, gibibytes


def gpus(case: Case) -> Iterator[Finding]:
    """GPUs are needed only if the report trains on them, but checked wherever they are."""
    yield from each(case, "GPUs", partial(_judge_number, case))
    yield from each(case, "GPU kind", partial(_judge_kind, most=usual(case, _kinds)))
    yield from same(case, "GPU driver", _driver)
    yield from each(case, "GPU topology", partial(_judge_matrix, most=usual(case, _matrix)))
    for check, judge in GPU_CHECKS.items():
        yield from each(case, check, partial(_judge_gpus, judge=judge))


def _judge_number(case: Case, probe: Probe) -> Verdict:
    there, on_gpus = len(probe.gpus), case.report.on("cuda")
    wanted = on_gpus.largest_shape[1]
    if on_gpus.suites and there < wanted:
        advice = "see what nvidia-smi says on the node"
        return Verdict("error", f"{there} seen, runs ask for {wanted}", advice)
    return Verdict("ok", f"{there} seen") if there else Verdict(NOT_THERE, "none, and none needed")


def _judge_kind(probe: Probe, most: tuple[str, ...] | None) -> Verdict:
    kinds = _kinds(probe)
    if len(kinds) > 1 or kinds != most:
        elsewhere = f", elsewhere {' and '.join(most or ()) or 'none'}" if kinds != most else ""
        what = f"{' and '.join(kinds) or 'none'}{elsewhere}"
        return Verdict("error", what, "a report needs GPUs of one kind")
    return Verdict("ok", kinds[0]) if kinds else Verdict(NOT_THERE, "no GPU")


def _kinds(probe: Probe) -> tuple[str, ...]:
    kinds = {f"{gpu.name}, {gibibytes(gpu.memory_bytes)}" for gpu in probe.host.gpus}
    return tuple(sorted(kinds))


def _driver(probe: Probe) -> str | None:
    return f"{probe.host.driver}, CUDA {probe.host.cuda}" if probe.host.driver else None


def _judge_matrix(probe: Probe, most: str | None) -> Verdict:
    if _matrix(probe) != most:
        advice = "see nvidia-smi topo -m: runs on different nodes may not be comparable"
        return Verdict("warning", "connected differently than elsewhere", advice)
    return Verdict("ok", "kept in results/doctor.json") if most else Verdict(NOT_THERE, "no GPU")


def _matrix(probe: Probe) -> str | None:
    """What nvidia-smi topo -m printed."""
    return probe.host.topology_matrix


def _judge_gpus(probe: Probe, judge: Callable[[GpuState], Verdict | None]) -> Verdict:
    """One verdict on all GPUs of a node: what is wrong with which, or what all are like."""
    told = {index: verdict for index, gpu in enumerate(probe.gpus) if (verdict := judge(gpu))}
    if not told:
        return Verdict(NOT_THERE, "no GPU" if not probe.gpus else "these GPUs do not say")
    wrong = {index: verdict for index, verdict in told.items() if verdict.level != "ok"}
    if not wrong:
        return Verdict("ok", ", ".join(dict.fromkeys(verdict.what for verdict in told.values())))
    level: Level = "error" if any(one.level == "error" for one in wrong.values()) else "warning"
    what = "; ".join(f"GPU {index} {verdict.what}" for index, verdict in wrong.items())
    return Verdict(level, what, next(iter(wrong.values())).advice)


def _gpu_clock(gpu: GpuState) -> Verdict | None:
    if gpu.max_sm_megahertz is None:
        return None
    if gpu.slowed_by:
        advice = "check its cooling and power supply"
        return Verdict("warning", f"is slowed by {', '.join(gpu.slowed_by)}", advice)
    own, default = gpu.application_sm_megahertz, gpu.default_application_sm_megahertz
    if own is not None and default is not None and own < default:
        advice = "nvidia-smi --reset-applications-clocks"
        return Verdict("warning", f"is set to {own} of {default} MHz", advice)
    return Verdict("ok", f"up to {gpu.max_sm_megahertz} MHz")


def _gpu_power(gpu: GpuState) -> Verdict | None:
    own, default = gpu.power_limit_watts, gpu.default_power_limit_watts
    if own is None or default is None:
        return None
    if own < default:
        what = f"may take {own:.0f} of {default:.0f} W"
        return Verdict("warning", what, f"nvidia-smi --power-limit={default:.0f}")
    return Verdict("ok", f"{own:.0f} W")


def _gpu_persistence(gpu: GpuState) -> Verdict | None:
    if gpu.persistent is None:
        return None
    if not gpu.persistent:
        return Verdict("warning", "is not persistent", "run nvidia-persistenced")
    return Verdict("ok", "persistent")


def _gpu_memory_errors(gpu: GpuState) -> Verdict | None:
    if gpu.row_remap_failed or gpu.row_remap_pending:
        what = "failed" if gpu.row_remap_failed else "waits for a reset"
        return Verdict(
            "error", f"has a row remapping that {what}", "reset the GPU, or have it replaced"
        )
    if gpu.ecc is None:
        return None
    if not gpu.ecc:
        return Verdict("warning", "has ECC off: faster, but errors go unnoticed")
    if gpu.uncorrected_errors:
        what = f"had {count(gpu.uncorrected_errors, 'uncorrected error')} since the driver started"
        return Verdict("warning", what, "the next one ends a run: reset the GPU")
    return Verdict("ok", "ECC on, no uncorrected error")


def _gpu_links(gpu: GpuState) -> Verdict | None:
    if not gpu.nvlinks:
        return None
    down = [str(link) for link, up in enumerate(gpu.nvlinks) if not up]
    if down:
        what = f"lacks NVLink {', '.join(down)}"
        return Verdict("warning", what, "does the board have it? nvidia-smi nvlink --status")
    return Verdict("ok", f"{len(gpu.nvlinks)} links up")


def _gpu_company(gpu: GpuState) -> Verdict | None:
    if gpu.processes:
        pids = ", ".join(map(str, gpu.processes))
        return Verdict("warning", f"is used by process {pids}", "end these processes first")
    return Verdict("ok", "none")


def _gpu_partition(gpu: GpuState) -> Verdict | None:
    if gpu.mig is None:
        return None
    if gpu.mig:
        return Verdict("error", "is split by MIG", "a run needs whole GPUs")
    return Verdict("ok", "off")


GPU_CHECKS: dict[str, Callable[[GpuState], Verdict | None]] = {
    "GPU clocks": _gpu_clock,
    "GPU power limit": _gpu_power,
    "GPU persistence": _gpu_persistence,
    "GPU memory errors": _gpu_memory_errors,
    "GPU MIG": _gpu_partition,
    "NVLink": _gpu_links,
    "GPU processes": _gpu_company,
}
