"""What nodes with GPUs would tell the doctor. Written by hand: no test machine has GPUs."""

from reperf.config import Report, load_report
from reperf.doctor.case import Case
from reperf.doctor.checks import find
from reperf.doctor.diagnosis import (
    Diagnosis,
    EnvironmentState,
    FabricPort,
    GpuState,
    Hop,
    Probe,
    Processor,
    Space,
    Transfer,
    Trial,
    Visit,
)
from reperf.machine import resolve
from reperf.training.record import Gpu, Host

GIB = 2**30
BUILD = "pytorch.cuda"
RECIPE = "ab" * 32
NODES = ("node1", "node2", "node3", "node4")

GPU = GpuState(
    name="NVIDIA A100-SXM4-80GB",
    sm_megahertz=210,
    max_sm_megahertz=1410,
    application_sm_megahertz=1410,
    default_application_sm_megahertz=1410,
    slowed_by=(),
    persistent=True,
    power_limit_watts=400.0,
    default_power_limit_watts=400.0,
    ecc=True,
    uncorrected_errors=0,
    row_remap_pending=False,
    row_remap_failed=False,
    nvlinks=(True,) * 12,
    mig=False,
    memory_used=GIB // 2,
    processes=(),
)
HOST = Host(
    hostname="somewhere",
    cpu="AMD EPYC 7742 64-Core Processor",
    cores=128,
    memory_bytes=1024 * GIB,
    os="Ubuntu 24.04 LTS",
    kernel="6.8.0",
    gpus=tuple(Gpu(name=GPU.name, uuid=f"GPU-{n}", memory_bytes=80 * GIB) for n in range(8)),
    driver="550.54.15",
    cuda="12.4",
    topology_matrix="GPU0 X NV12",
)
PROCESSOR = Processor(
    governors={"performance": 128},
    megahertz=(2250, 3400),
    allowed_megahertz=3400,
    possible_megahertz=3400,
    quota=None,
    settings={"SMT": "0"},
    load=0.2,
    busy=(),
)
SPACE = Space(
    memory_available=1000 * GIB,
    swap_used=0,
    shared_memory_free=512 * GIB,
    disk_free=5000 * GIB,
    inodes_free=10**9,
)
PORT = FabricPort(device="mlx5_0", port=1, state="ACTIVE", gigabits=200, link="InfiniBand")
ENVIRONMENT = EnvironmentState(
    trouble="",
    recipe_sha256=RECIPE,
    python="3.11.7",
    framework="torch 2.13.0",
    packages={"torch": "2.13.0", "numpy": "2.4.6"},
)
PROBE = Probe(
    host=HOST,
    shared_trouble="",
    processor=PROCESSOR,
    space=SPACE,
    gpus=(GPU,) * 8,
    fabric=(PORT,) * 4,
    environments={BUILD: ENVIRONMENT},
)


def trial(*nodes: str, **changes: object) -> Trial:
    """A trial that went well on all GPUs of some nodes, but for some changes."""
    ranks = 8 * len(nodes)
    usual = Trial(
        name=BUILD,
        build=BUILD,
        nodes=nodes,
        world_size=ranks,
        devices=(GPU.name,) * ranks,
        convolution_error=4e-7,
        library="NCCL 2.29.7",
        transfers=(Transfer(bytes=64 * 10**6, seconds=0.0015),),
        hops=tuple(
            Hop(sender=sender, receiver=receiver, bytes=64 * 10**6, seconds=seconds)
            for rank in range(ranks - 1)
            for seconds in [0.001 if (rank + 1) % 8 else 0.002]  # in a node, and over nodes
            for sender, receiver in ((rank, rank + 1), (rank + 1, rank))
        ),
        log=f"logs/doctor/{BUILD}.log",
    )
    return usual.model_copy(update=changes)


TRIALS = (*(trial(node) for node in NODES), trial(*NODES))


def report(**more: object) -> Report:
    suite = {
        "name": "resnet50",
        "workload": "resnet50",
        "precision": "fp32",
        "batch_size": 128,
        "input": "synthetic",
        "systems": ["pytorch"],
    }
    asked = {"suites": [suite], "topologies": ["1n1g", "4n8g"]}
    return resolve(load_report(asked | {"cluster": {"nodes": 4, "devices_per_node": 8}} | more))


def case(
    ill: Probe = PROBE,
    *,
    node: str = "node3",
    visit: dict | None = None,
    trials: tuple[Trial, ...] = TRIALS,
) -> Case:
    """Four nodes that are well but for one.

    Args:
        ill: what that node tells.
        visit: what about the visit to it is unusual.
    """
    visits = {
        name: Visit(node=name, probe=PROBE, clock_offset=0.01, note_arrived=True) for name in NODES
    }
    visits[node] = visits[node].model_copy(update={"probe": ill} | (visit or {}))
    return Case(report(), tuple(visits.values()), trials, {BUILD: RECIPE}, needed_bytes=100 * GIB)


def diagnosis(*ill: Probe, trials: tuple[Trial, ...] = TRIALS) -> Diagnosis:
    """What the doctor finds on those nodes."""
    one = case(*ill, trials=trials)
    return Diagnosis(
        profile="slurm",
        configfile="config.yaml",
        made="2026-11-21T08:15:02+00:00",
        findings=find(one),
        visits=one.visits,
        trials=one.trials,
    )


def with_gpu(**changes: object) -> Probe:
    """A node whose GPU 5 is unusual."""
    return probe(gpus=(*PROBE.gpus[:5], GPU.model_copy(update=changes), *PROBE.gpus[6:]))


def with_part(part: str, **changes: object) -> Probe:
    """A node of which one part is unusual."""
    return probe(**{part: getattr(PROBE, part).model_copy(update=changes)})


def with_build(**changes: object) -> Probe:
    """A node whose build is unusual."""
    return probe(environments={BUILD: ENVIRONMENT.model_copy(update=changes)})


def probe(**changes: object) -> Probe:
    """A node that is otherwise."""
    return PROBE.model_copy(update=changes)
