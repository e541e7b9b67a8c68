"""What this machine is, and what it can hold."""

import os

import pytest
from reperf import machine
from reperf.config import Report, load_report
from reperf.errors import ReperfError
from reperf.training.record import Gpu, Host

GPU = Gpu(name="NVIDIA V100", uuid="GPU-0", memory_bytes=16 * 2**30)


def report(**changes: object) -> Report:
    suite = {
        "name": "small",
        "workload": "resnet50",
        "precision": "fp32",
        "batch_size": 4,
        "input": "synthetic",
        "systems": ["pytorch"],
    }
    return load_report({"suites": [suite], "topologies": ["1n1g", "1n2g"]} | changes)


def test_the_host_is_this_machine():
    host = machine.describe_host()
    assert host.hostname == os.uname().nodename
    assert host.kernel == os.uname().release
    assert 1 <= host.cores <= os.cpu_count()
    assert host.memory_bytes > 2**28
    assert host.cpu
    assert host.os
    assert Host.model_validate_json(host.model_dump_json()) == host


def test_cores_are_those_that_this_process_may_use():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert machine.cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert machine.cores() == len(allowed)


def test_gpus_and_what_belongs_to_them_come_together():
    host = machine.describe_host()
    assert bool(host.gpus) == bool(host.driver) == bool(host.cuda)
    assert all(gpu.memory_bytes > 2**30 for gpu in host.gpus)


@pytest.mark.parametrize(
    ("gpus", "changes", "device"),
    [
        (0, {}, "cpu"),
        (1, {}, "cpu"),  # not enough for 1n2g, and a report never mixes devices
        (2, {}, "cuda"),
        (2, {"device": "cpu"}, "cpu"),
        (0, {"device": "cuda"}, "cuda"),
        (0, {"cluster": {"nodes": 4, "devices_per_node": 8}}, "cuda"),
    ],
)
def test_a_report_trains_on_one_kind_of_device(monkeypatch, gpus, changes, device):
    monkeypatch.setattr(machine, "gpus", lambda: (GPU,) * gpus)
    assert machine.resolve(report(**changes)).resolved_device == device


def test_what_fits_is_let_through(monkeypatch):
    monkeypatch.setattr(machine, "cores", lambda: 4)
    machine.check_fits(report(device="cpu"))
    machine.check_fits(report(device="cpu", threads_per_device=2))
    cluster = {"nodes": 4, "devices_per_node": 8}
    machine.check_fits(machine.resolve(report(topologies=["1n8g", "4n8g"], cluster=cluster)))


@pytest.mark.parametrize(
    ("changes", "topology", "allowed"),
    [
        ({"device": "cpu", "topologies": ["1n8g"]}, "1n8g", "1n4g"),
        ({"device": "cpu", "threads_per_device": 3}, "1n2g", "1n1g"),
        ({"device": "cpu", "topologies": ["1n1g", "2n1g"]}, "2n1g", "1n4g"),
        ({"device": "cuda"}, "1n2g", "1n1g"),
        (
            {"topologies": ["2n8g", "8n8g"], "cluster": {"nodes": 4, "devices_per_node": 8}},
            "8n8g",
            "4n8g",
        ),
    ],
)
def test_a_topology_that_is_too_large_is_one_line(monkeypatch, changes, topology, allowed):
    monkeypatch.setattr(machine, "cores", lambda: 4)
    monkeypatch.setattr(machine, "gpus", lambda: (GPU,))
    with pytest.raises(ReperfError) as refusal:
        machine.check_fits(machine.resolve(report(**changes)))
    message = str(refusal.value)
    assert message.startswith(f"suite small: topology {topology} is too large: ")
    assert message.endswith(f"; allowed: at most {allowed}")
