"""What nodes with GPUs would report to the doctor. Written by hand: no test machine has GPUs."""

from reperf.config import Report, load_report
from reperf.doctor.findings import Survey, find
from reperf.doctor.hardware import ADVICE
from reperf.host import Gpu, Host
from reperf.machine import resolve
from reperf.records.diagnosis import (
    Diagnosis,
    EnvironmentState,
    NodeReport,
    Probe,
    Transfer,
    Trial,
    Verdict,
)

GIB = 2**30
BUILD = "pytorch.cuda"
RECIPE = "ab" * 32
NODES = ("node1", "node2", "node3", "node4")

GPU_NAME = "NVIDIA A100-SXM4-80GB"
HOST = Host(
    hostname="somewhere",
    cpu="AMD EPYC 7742 64-Core Processor",
    cores=128,
    memory_bytes=1024 * GIB,
    os="Ubuntu 24.04 LTS",
    kernel="6.8.0",
    gpus=tuple(Gpu(name=GPU_NAME, uuid=f"GPU-{n}", memory_bytes=80 * GIB) for n in range(8)),
    driver="550.54.15",
    cuda="12.4",
    topology_matrix="GPU0 X NV12",
)
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
    disk_free=5000 * GIB,
    settings={"SMT": "0"},
    readings={check: Verdict("ok", "well") for check in ADVICE},
    ports=(200.0,) * 4,
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
        devices=(GPU_NAME,) * ranks,
        convolution_error=4e-7,
        library="NCCL 2.29.7",
        transfers=(Transfer(bytes=64 * 10**6, seconds=0.0015),),
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


def survey(
    ill: Probe = PROBE,
    *,
    node: str = "node3",
    node_report: dict | None = None,
    trials: tuple[Trial, ...] = TRIALS,
) -> Survey:
    """Four nodes that are well but for one.

    Args:
        ill: what that node reports.
        node_report: what about its answer is unusual.
    """
    reports = {
        name: NodeReport(node=name, probe=PROBE, clock_offset=0.01, note_arrived=True)
        for name in NODES
    }
    reports[node] = reports[node].model_copy(update={"probe": ill} | (node_report or {}))
    return Survey(
        report(), tuple(reports.values()), trials, {BUILD: RECIPE}, needed_bytes=100 * GIB
    )


def diagnosis(*ill: Probe, trials: tuple[Trial, ...] = TRIALS) -> Diagnosis:
    """What the doctor finds on those nodes."""
    four = survey(*ill, trials=trials)
    return Diagnosis(
        profile="slurm",
        configfile="config.yaml",
        made="2026-11-21T08:15:02+00:00",
        findings=tuple(find(four)),
        node_reports=four.node_reports,
        trials=four.trials,
    )


def with_reading(check: str, what: str | None = None, level: str = "warning") -> Probe:
    """A node one of whose readings is not fine, or unknown."""
    readings = {name: reading for name, reading in PROBE.readings.items() if name != check}
    return probe(readings=readings | ({check: Verdict(level, what)} if what else {}))


def with_host(**changes: object) -> Probe:
    """A node that is another machine."""
    return probe(host=HOST.model_copy(update=changes))


def with_build(**changes: object) -> Probe:
    """A node whose build is unusual."""
    return probe(environments={BUILD: ENVIRONMENT.model_copy(update=changes)})


def probe(**changes: object) -> Probe:
    """A node that is otherwise."""
    return PROBE.model_copy(update=changes)
