"""This machine: its CPUs, memory, GPUs and versions, as run records hold them."""

import os
import platform
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

import psutil

from reperf.builds import ImageBuild, LockBuild, SiteBuild, build_of
from reperf.builds.engines import engine_called, engine_here
from reperf.builds.fitness import fit_lock, why_not_compiled, why_not_computed, why_unfit
from reperf.builds.image_build import check_image
from reperf.config import Container, Report, Run, topology_shape
from reperf.config.site import ENGINES, Hardware
from reperf.config.words import LARGEST
from reperf.data.kinds import KINDS
from reperf.errors import ReperfError
from reperf.host import Gpu, Host
from reperf.programs import answer_of
from reperf.systems import BuildKind, LockName, Precision, System, load_systems
from reperf.systems.workloads import load_workloads

KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")  # where AMD's driver lists CPUs and GPUs


def cores() -> int:
    """Logical CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def gpu_handles() -> Iterator[list[Any]]:
    """NVML's handles of all GPUs, while NVML can be asked; none where there is no NVIDIA driver."""
    import pynvml  # noqa: PLC0415 - a slow import, which planning for a cluster does without

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield []
        return
    try:
        yield [*map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))]
    finally:
        pynvml.nvmlShutdown()


@cache
def gpus() -> tuple[Gpu, ...]:
    """The GPUs that NVML sees; where there is no NVIDIA driver, those of AMD's driver, if any."""
    import pynvml  # noqa: PLC0415

    with gpu_handles() as handles:
        if not handles:
            return tuple(_amds_gpus())
        return tuple(
            Gpu(
                name=_name_of(handle),
                uuid=pynvml.nvmlDeviceGetUUID(handle),
                memory_bytes=pynvml.nvmlDeviceGetMemoryInfo(handle).total,
                capability="{}.{}".format(*pynvml.nvmlDeviceGetCudaComputeCapability(handle)),
            )
            for handle in handles
        )


def _name_of(handle: Any) -> str:  # noqa: ANN401 - NVML's
    import pynvml  # noqa: PLC0415

    name = str(pynvml.nvmlDeviceGetName(handle))
    with suppress(pynvml.NVMLError):  # it cannot be split
        name += " MIG" * pynvml.nvmlDeviceGetMigMode(handle)[0]
    return name


def _amds_gpus() -> Iterator[Gpu]:
    """The GPUs that AMD's driver lists, in the order in which ROCm numbers them.

    Source: drivers/gpu/drm/amd/amdkfd/kfd_topology.c in Linux.
    """
    nodes = sorted(KFD_NODES.glob("[0-9]*"), key=lambda node: int(node.name))
    for node in nodes:
        with suppress(OSError, ValueError):
            facts = _numbers_in(node / "properties")
            version = facts.get("gfx_target_version", 0)
            if not facts.get("simd_count") or not version:  # a CPU
                continue
            gfx = f"gfx{version // 10_000}{version // 100 % 100:x}{version % 100:x}"
            yield Gpu(
                name=f"AMD {gfx}",
                uuid=f"GPU-{facts.get('unique_id', 0):016x}",
                memory_bytes=_numbers_in(node / "mem_banks/0/properties")["size_in_bytes"],
                gfx=gfx,
            )


def _numbers_in(file: Path) -> dict[str, int]:
    """The lines of a file of AMD's driver, each a name and a number."""
    pairs = (line.split() for line in file.read_text(encoding="ascii").splitlines())
    return {name: int(number) for name, number in pairs}


def visible_gpus(environment: Mapping[str, str]) -> tuple[Gpu, ...]:
    """The GPUs of this machine that CUDA shows to a process with these environment variables."""
    every = gpus()
    names = visible_names(environment)
    if names is None:
        return every
    seen = [_gpu_called(name, every) for name in names]
    return tuple(gpu for gpu in takewhile(bool, seen) if gpu)


def visible_names(environment: Mapping[str, str]) -> tuple[str, ...] | None:
    """The numbers or UUIDs in CUDA_VISIBLE_DEVICES, up to an empty one or -1, where CUDA stops.

    None if it is not set, so that all GPUs are visible.
    """
    named = environment.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return None
    names = (name.strip() for name in named.split(","))
    return tuple(takewhile(lambda name: name and name != "-1", names))


def _gpu_called(name: str, every: Sequence[Gpu]) -> Gpu | None:
    if name.isdecimal():
        return every[int(name)] if int(name) < len(every) else None
    # NVML names a part of a split GPU in other words; GPUs that differ are rare.
    fitting = (gpu for gpu in every if name.startswith("MIG-") or gpu.uuid.startswith(name))
    return next(fitting, None)


def resolve(report: Report) -> Report:
    """Decide a report's device and container engine, and what the hardware here rules out.

    A Slurm cluster trains on its GPUs. So does this machine if it has enough for every topology: a
    suite never mixes devices, because its cells could not be compared. An engine is looked for
    only if it is needed: a report without images stays the same, whatever is installed.
    """
    report = report.model_copy(update={"hardware": Hardware(), "other_hardware": Hardware()})
    if report.device == "auto":
        report = report.model_copy(update={"device": _best_device(report)})
    for part in map(_with_hardware, report.of_each_device()):
        its = "hardware" if part.device == report.device else "other_hardware"
        engine = part.container if part.container.engine else report.container
        report = report.model_copy(update={its: part.hardware, "container": engine})
    return report


def _with_hardware(report: Report) -> Report:
    """Decide likewise for a report whose suites all train on one kind of device."""
    if not report.cluster:
        hardware = Hardware(topologies=_too_large(report), shared=_shared(report))
        report = report.model_copy(update={"hardware": hardware})
    report = _with_engine(report)
    known: dict[str, Any] = {}
    if report.device == "cuda":
        known = _builds_on_gpus(report)
    elif not report.cluster:
        known = {"lacking": _lacking(report, ())}
    hardware = report.hardware.model_copy(update=known)
    return _with_engine(report.model_copy(update={"hardware": hardware}))


def _too_large(report: Report) -> dict[str, str]:
    """The topologies of a report that its machine or cluster is too small for, and why.

    Where a machine is too small for all of them, `check_fits` refuses the report.
    """
    nodes, devices, words = _room(report)
    shared = _shared(report)
    return {
        topology: f"{topology} is too large: {words}"
        for _, topology in report.asked
        if topology_shape(topology)[0] > nodes or topology_shape(topology)[1] > devices
        if topology not in shared
    }


def _shared(report: Report) -> dict[str, int]:
    """The topologies of a report whose devices share this machine's CPUs, and how many it has."""
    if report.device != "cpu" or not report.share_cpus:
        return {}
    each = report.threads_per_device
    return {
        topology: cores()
        for _, topology in report.asked
        if topology_shape(topology)[0] == 1 and topology_shape(topology)[1] * each > cores() >= each
    }


def _with_engine(report: Report) -> Report:
    """The same report, with the engine that is here if it needs one and names none."""
    if report.container.engine or not any(run.container for run in report.run_of_each_entry()):
        return report
    chosen = report.container.model_copy(update={"engine": engine_here()})
    return report.model_copy(update={"container": chosen})


def why_not_in_precision(run: Run, hosts: Sequence[Host]) -> str | None:
    """Why the GPUs of some hosts, or this machine's CPU, do not compute as a run asks for."""
    if run.device == "cuda":
        return why_not_computed(run.precision, hosts)
    return load_systems()[run.system].why_not_on_processor(run.precision, cpu_flags())


def _builds_on_gpus(report: Report) -> dict[str, Any]:
    """Which builds run on the GPUs that a report is for; nothing where these are not known.

    Of a system's locks it takes the first that runs there, and its image where none does. A
    cluster's GPUs are known once `reperf doctor` has looked at its nodes.
    """
    from reperf.records.diagnosis import hosts_seen  # noqa: PLC0415 - every call imports this module

    cluster = report.cluster
    if cluster:
        hosts = hosts_seen(cluster.partition)
    else:
        hosts = [describe_host().model_copy(update={"gpus": visible_gpus(os.environ)})]
    if not any(host.gpus for host in hosts):
        return {}
    locks: dict[str, LockName] = {}
    ways: dict[str, BuildKind] = {}
    unfit: dict[str, dict[BuildKind, str]] = {}
    for build in {build_of(run): None for run in report.run_of_each_entry(own_builds=False)}:
        system = build.system.id
        if isinstance(build, SiteBuild):  # what its code is for is known where a run starts
            continue
        if not (why := why_unfit(build, hosts)):
            continue
        if not isinstance(build, LockBuild):
            unfit.setdefault(system, {})["image"] = why
        elif other := fit_lock(build, hosts):
            locks[system] = other
        else:
            unfit.setdefault(system, {})["lock"] = why
            if _image_runs(report, build.system, hosts):
                ways[system] = "image"
    return {"locks": locks, "ways": ways, "unfit": unfit, "lacking": _lacking(report, hosts)}


def _lacking(report: Report, hosts: Sequence[Host]) -> dict[str, dict[Precision, str]]:
    lacking: dict[str, dict[Precision, str]] = {}
    for run in report.run_of_each_entry():
        if why := why_not_in_precision(run, hosts):
            lacking.setdefault(run.system, {})[run.precision] = why
    return lacking


def _image_runs(report: Report, system: System, hosts: Sequence[Host]) -> bool:
    """Whether a system's image declares code for all GPUs, and an engine is here to run it."""
    engine, image = report.container.engine or engine_here(), system.image
    if not engine or not image or not image.architectures or "image" not in system.ways("cuda"):
        return False
    build = ImageBuild(system, Container(engine=engine, image=image.reference))
    return why_unfit(build, hosts) is None


def _best_device(report: Report) -> Literal["cpu", "cuda"]:
    if report.cluster is not None:
        return "cuda"
    undecided = [suite for suite in report.suites if suite.device is None]
    wanted = report.model_copy(update={"suites": tuple(undecided)}).largest_shape[1]
    seen = visible_gpus(os.environ)
    # No lock or image of reperf's has code for AMD's GPUs.
    useful = [gpu for gpu in seen if gpu.gfx is None or report.names_environments]
    return "cuda" if len(useful) >= wanted else "cpu"


def check_fits(report: Report) -> None:
    """Refuse a report that this machine, or the cluster that it describes, is too small for.

    A machine may be too small for some of the topologies, but not for all of them.
    """
    _check_servers(report)
    large = _too_large(report)
    if not report.cluster and any(topology not in large for _, topology in report.asked):
        return
    nodes, devices, _ = _room(report)
    for suite, topology in report.asked:
        if not devices:
            raise ReperfError(_no_device(report))
        if topology in large:
            raise ReperfError(
                f"suite {suite.name}: topology {large[topology]}; "
                f"allowed: at most {nodes}n{devices}g"
            )


def _check_servers(report: Report) -> None:
    """Refuse more parameter servers than this machine has CPUs for; a cluster's are Slurm's."""
    for run in report.run_of_each_entry() if not report.cluster else ():
        if run.servers and run.servers.cpus > cores():
            raise ReperfError(
                f"suite {run.suite}: {run.entry}: {run.servers.title} need {run.servers.cpus} "
                f"CPUs; allowed: up to {cores()}, the CPUs of this machine"
            )


def _room(report: Report) -> tuple[int, int, str]:
    """The most nodes of a run, the most devices of a node, and both in words."""
    if report.cluster is not None:
        nodes, devices = report.cluster.nodes, report.cluster.devices_per_node
        return nodes, devices, f"cluster has {nodes} nodes with {devices} devices each"
    if report.resolved_device == "cuda":
        slots = len(visible_gpus(os.environ))
        return 1, slots, f"this machine has {slots} GPU{'s' * (slots != 1)}{_hidden()}"
    threads = report.threads_per_device
    slots = cores() // threads
    each = f" of {threads} threads" if threads > 1 else ""
    return 1, slots, f"this machine has CPUs for {slots} device{'s' * (slots != 1)}{each}"


def _no_device(report: Report) -> str:
    if report.device == "cuda":
        return (
            f"device: got cuda, and no GPU is seen here{_hidden()}; "
            "allowed: auto, cpu, or a cluster"
        )
    return (
        f"threads_per_device: got {report.threads_per_device}; allowed: up to {cores()}, the CPUs "
        "of this machine"
    )


def _hidden() -> str:
    """Why not all of this machine's GPUs are seen; "" if they are."""
    if len(visible_gpus(os.environ)) == len(gpus()):
        return ""
    named = os.environ["CUDA_VISIBLE_DEVICES"]
    return f" of its {len(gpus())}, as CUDA_VISIBLE_DEVICES={named!r} says"


def check_memory(report: Report) -> None:
    """Refuse to search for the largest batch where nothing says how much memory there is.

    A CPU's machine would swap, or kill another process; a GPU has a limit of its own.
    """
    if report.resolved_device == "cuda":
        if report.memory_limit is not None:
            raise ReperfError(
                f"memory_limit: got {report.memory_limit} for training on GPUs; "
                "allowed: with CPUs alone: a GPU's memory is its limit"
            )
        return
    for run in report.run_of_each_entry():
        if run.batch_size == LARGEST and run.memory_limit is None:
            raise ReperfError(
                f"suite {run.suite}: batch_size: got {LARGEST} on CPUs, where a machine without a "
                "limit would swap; allowed: a number, or memory_limit: bytes for each process"
            )


def check_containers(report: Report) -> None:
    """Refuse images that cannot be meant, and images where nothing runs them."""
    runs = report.run_of_each_entry()
    systems = {run.container: run.system for run in runs if run.container}
    for container, system in systems.items():
        place = f"images.{system}" if system in report.images else f"image of {system}"
        check_image(container, place)
    engine = report.container.engine
    # Of nodes, only the nodes can tell.
    on_nodes = report.slurm if engine == "pyxis" else report.cluster
    if not systems or (engine and (on_nodes or engine_called(engine).is_here)):
        return
    who_has = "nodes have" if report.cluster else "machine has"
    known = [name for name in ENGINES if report.slurm or name != "pyxis"]
    raise ReperfError(
        f"container.engine: {f'{engine} is not here' if engine else 'left out, and none is here'}, "
        f"for the images of {', '.join(sorted(systems.values()))}; allowed: one that the "
        f"{who_has}, of {', '.join(known)}; or `build: lock`"
    )


def check_named_builds(report: Report) -> None:
    """Refuse environments that do not exist or cannot train, and locks that do not exist."""
    for run in report.run_of_each_entry():
        if run.environment or run.lock_file:
            _ = build_of(run).recipe_digest


def check_compiler(report: Report) -> None:
    """Refuse what compiles while it trains, where this machine trains it and has no compiler."""
    for run in () if report.cluster else report.run_of_each_entry():
        if why := why_not_compiled(run):
            raise ReperfError(f"suite {run.suite}: {why}")


def check_data(report: Report) -> None:
    """Refuse to train without data of the suite's kind, or GPUs on what is embedded in reperf.

    Embedded data never leaves a node's memory: it shows no loader. A data set may allow it.
    """
    for suite in report.suites:
        if suite.input == "synthetic" or not suite.topologies_of_runs:
            continue
        data = report.data_of(suite)
        if data is None:
            if report.runs(suite):
                kind = load_workloads()[suite.workload].data
                raise ReperfError(
                    f"suite {suite.name}: `data` has no set of {kind}; "
                    f"allowed: one more, with `kind: {kind}`, or `input: synthetic`"
                )
        elif report.resolved_device != "cpu" and data.is_embedded and not data.embedded_on_gpus:
            kind = KINDS[data.kind]
            raise ReperfError(
                f"data.{data.name}: no {data.kind}, so that suite {suite.name} would train GPUs on "
                f"the {kind.few} of the embedded set; allowed: {data.kind}: {kind.real}, "
                "or embedded_on_gpus: true, in that data set"
            )


@cache
def describe_host() -> Host:
    """This machine, as a run record holds it."""
    import pynvml  # noqa: PLC0415

    with gpu_handles() as handles:
        driver = pynvml.nvmlSystemGetDriverVersion() if handles else None
        cuda = pynvml.nvmlSystemGetCudaDriverVersion_v2() if handles else None
    matrix = answer_of(["nvidia-smi", "topo", "-m"]) if gpus() else None
    return Host(
        hostname=socket.gethostname(),
        cpu=_from_cpuinfo("model name") or platform.processor(),
        cores=cores(),
        memory_bytes=psutil.virtual_memory().total,
        os=_os_name(),
        kernel=platform.release(),
        gpus=gpus(),
        driver=driver,
        cuda=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
        # Its head is underlined, in a pipe too.
        topology_matrix=matrix and re.sub(r"\x1b\[[\d;]*m", "", matrix),
    )


@cache
def cpu_flags() -> frozenset[str]:
    """What the processor can do, as Linux names it; empty where Linux does not say it."""
    return frozenset(_from_cpuinfo("flags").split())


def _from_cpuinfo(name: str) -> str:
    """A field of /proc/cpuinfo; libraries that know more systems take a second to answer."""
    try:
        listed = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""
    match = re.search(rf"^{name}\s*: (.+)$", listed, re.MULTILINE)
    return match[1] if match else ""


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.platform()
