"""What this machine is, and what it can hold."""

import os
from contextlib import nullcontext
from types import SimpleNamespace

import pynvml
import pytest
from reperf import machine
from reperf.config import Report, load_report
from reperf.host import Gpu, Host
from reperf.plans.run_plan import variables_of

from tests.helpers.refusal import refused_in_one_line

GPU = Gpu(name="NVIDIA V100", uuid="GPU-0", memory_bytes=16 * 2**30)
SUITE = {
    "name": "small",
    "workload": "resnet50",
    "precision": "fp32",
    "batch_size": 4,
    "input": "synthetic",
    "systems": ["pytorch"],
}


def report(**changes: object) -> Report:
    return load_report({"suites": [SUITE], "topologies": ["1n1g", "1n2g"]} | changes)


def gpus(monkeypatch: pytest.MonkeyPatch, *seen: Gpu) -> None:
    """Give this machine four CPUs and some GPUs."""
    monkeypatch.setattr(machine, "cores", lambda: 4)
    monkeypatch.setattr(machine, "gpus", lambda: seen)


def check(**changes: object) -> Report:
    """The report as this machine resolves it, if it fits."""
    asked = machine.resolve(report(**changes))
    machine.check_fits(asked)
    return asked


def test_the_host_is_this_machine():
    host = machine.describe_host()
    assert host.hostname == os.uname().nodename
    assert host.kernel == os.uname().release
    assert 1 <= host.cores <= os.cpu_count()
    assert host.memory_bytes > 2**28
    assert host.cpu
    assert host.os
    assert Host.model_validate_json(host.model_dump_json()) == host
    assert bool(host.gpus) == bool(host.driver) == bool(host.cuda)
    assert all(gpu.memory_bytes > 2**30 for gpu in host.gpus)


@pytest.mark.parametrize(("mode", "name"), [([1, 1], "H100 MIG"), ([0, 0], "H100"), (None, "H100")])
def test_a_gpu_that_is_split_has_another_name(monkeypatch, mode, name):
    def mig_mode(_handle: object) -> list[int]:
        if mode is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return mode

    monkeypatch.setattr(machine, "gpu_handles", lambda: nullcontext(["handle"]))
    answers = {"Name": "H100", "UUID": "GPU-1", "CudaComputeCapability": (9, 0)}
    answers["MemoryInfo"] = SimpleNamespace(total=1)
    for what, answer in answers.items():
        monkeypatch.setattr(pynvml, f"nvmlDeviceGet{what}", lambda _, answer=answer: answer)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMigMode", mig_mode)
    assert [gpu.name for gpu in machine.gpus.__wrapped__()] == [name]


AMDS_NODES = {
    0: ("cpu_cores_count 64\nsimd_count 0\ngfx_target_version 0\n", 2**38),
    2: ("simd_count 440\ngfx_target_version 90010\nunique_id 3735928559\n", 2**36),
    10: ("simd_count 1216\ngfx_target_version 90402\nunique_id 1\n", 3 * 2**36),
}


def test_gpus_of_amd_are_seen_without_nvml_and_only_an_environment_trains_on_them(
    tmp_path, monkeypatch
):
    for number, (properties, size) in AMDS_NODES.items():
        bank = tmp_path / str(number) / "mem_banks/0"
        bank.mkdir(parents=True)
        (tmp_path / str(number) / "properties").write_text(properties)
        (bank / "properties").write_text(f"heap_type 1\nsize_in_bytes {size}\nflags 0\n")
    monkeypatch.setattr(machine, "KFD_NODES", tmp_path)
    monkeypatch.setattr(machine, "gpu_handles", lambda: nullcontext([]))
    found = machine.gpus.__wrapped__()
    assert [(gpu.name, gpu.memory_bytes) for gpu in found] == [
        ("AMD gfx90a", 2**36),
        ("AMD gfx942", 3 * 2**36),
    ]
    assert found[0].uuid == "GPU-00000000deadbeef"
    gpus(monkeypatch, *found)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert machine.resolve(report()).device == "cpu"
    assert machine.resolve(report(environment="/sw/pytorch")).device == "cuda"
    resolved = machine.resolve(report(device="cuda"))
    assert "it is not a build for ROCm; the GPU is AMD's gfx90a" in resolved.left_out()


def test_cores_are_those_that_this_process_may_use():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert machine.cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert machine.cores() == len(allowed)


@pytest.mark.parametrize(
    ("seen", "changes", "device"),
    [
        (0, {}, "cpu"),
        (1, {}, "cpu"),  # not enough for 1n2g, and a suite never mixes devices
        (2, {}, "cuda"),
        (2, {"device": "cpu"}, "cpu"),
        (0, {"device": "cuda"}, "cuda"),
        (0, {"cluster": {"nodes": 4, "devices_per_node": 8}}, "cuda"),
    ],
)
def test_a_report_trains_on_one_kind_of_device(monkeypatch, seen, changes, device):
    gpus(monkeypatch, *[GPU] * seen)
    assert machine.resolve(report(**changes)).resolved_device == device


def test_a_suite_may_train_on_the_cpu_beside_those_on_gpus(monkeypatch):
    """What the GPUs decide is none of its own, and it alone is limited in its memory."""
    volta = GPU.model_copy(update={"capability": "7.0"})
    gpus(monkeypatch, volta, volta)
    beside = SUITE | {"name": "beside", "device": "cpu", "topologies": ["1n1g", "1n4g"]}
    of = machine.resolve(report(suites=[SUITE, beside], device="cuda", memory_limit=2**33))
    on_gpus, on_cpus = (of.alone(name) for name in ("small", "beside"))
    for part in (on_gpus, on_cpus):
        machine.check_fits(part)
        machine.check_memory(part)
        assert list(part.cells(part.suites[0])) == list(of.cells(part.suites[0]))
    assert {run.device for run in on_gpus.runs(on_gpus.suites[0])} == {"cuda"}
    (one, *_, four) = on_cpus.runs(on_cpus.suites[0])
    assert (one.device, one.lock, one.memory_limit, four.topology) == ("cpu", None, 2**33, "1n4g")
    assert (on_gpus.hardware.locks, on_gpus.memory_limit) == ({"pytorch": "volta"}, None)


@pytest.mark.parametrize(("build", "engine"), [("lock", None), ("image", "podman")])
def test_an_engine_is_chosen_only_for_images(monkeypatch, tmp_path, build, engine):
    asked = report(device="cpu", build=build)
    monkeypatch.setenv("PATH", str(tmp_path))
    before = machine.resolve(asked)
    (tmp_path / "podman").write_text("#!/bin/sh\n")
    (tmp_path / "podman").chmod(0o755)
    after = machine.resolve(asked)
    assert after.container.engine == engine
    assert (after == before) == (build == "lock")


@pytest.mark.parametrize(
    ("named", "numbers"),
    [
        *(("3,0", "30"), ("GPU-2, GPU-0", "20"), ("2,3,1", "231")),
        *(("1,-1,2", "1"), ("1,4,2", "1"), ("MIG-8f2", "0"), ("", ""), ("NoDevFiles", "")),
    ],
)
def test_gpus_that_cuda_sees_are_a_reports_and_hidden_ones_are_not(monkeypatch, named, numbers):
    gpus(monkeypatch, *(GPU.model_copy(update={"uuid": f"GPU-{number}"}) for number in range(4)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert "".join(gpu.uuid[-1] for gpu in machine.visible_gpus(os.environ)) == numbers
    enough = len(numbers) > 1
    assert machine.resolve(report()).resolved_device == ("cuda" if enough else "cpu")
    if enough:
        check(device="cuda")
        return
    place = "suite small: topology 1n2g" if numbers else "device: got cuda"
    with refused_in_one_line(place) as refusal:
        check(device="cuda", topologies=["1n2g"])
    assert f"of its 4, as CUDA_VISIBLE_DEVICES={named!r} says; allowed" in str(refusal.value)


def test_a_hidden_gpu_rules_out_no_build(monkeypatch):
    two = [GPU.model_copy(update={"capability": one}) for one in ("3.5", "8.0")]
    host = describe(gpus=two, driver="580.65.06", cuda="13.0")
    monkeypatch.setattr(machine, "describe_host", lambda: host)
    gpus(monkeypatch, *two)

    def reasons() -> str:
        return machine.resolve(report(device="cuda", topologies=["1n1g"])).left_out()

    assert "the GPU's is 3.5" in reasons()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert not reasons()


def describe(**gpus: object) -> Host:
    """This machine without its GPUs, or with others."""
    own = machine.describe_host().model_dump(exclude={"gpus", "driver", "cuda"})
    return Host(**own, **gpus)


RECORDS = {"suites": [SUITE | {"input": "records"}, SUITE | {"name": "twin"}]}
BERT = {"suites": [SUITE | {"workload": "bert-base", "input": "records"}]}
LARGEST = {"suites": [SUITE | {"batch_size": "largest"}]}
CPU, CUDA = {"device": "cpu"}, {"device": "cuda"}
CLUSTER = {"cluster": {"nodes": 1, "devices_per_node": 2}}
FEW_IMAGES = "data.set: no images, so that suite small would train GPUs on the few hundred of the "


def data(**keys: object) -> dict:
    return {"data": {"name": "set"} | keys}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (RECORDS | data() | CPU, None),
        (RECORDS | data(embedded_on_gpus=True) | CUDA, None),
        (RECORDS | data(images="imagenet") | CUDA, None),
        (data() | CUDA, None),  # synthetic
        (BERT | data(kind="text", text="wikipedia") | CUDA, None),
        (RECORDS | data() | CUDA, FEW_IMAGES),
        (RECORDS | data() | CLUSTER, FEW_IMAGES),
        (BERT | CUDA, "data.embedded-text: no text, so that suite small would train GPUs on the t"),
        (
            RECORDS | data(kind="text") | CPU,
            "suite small: `data` has no set of images; allowed: one more, with `kind: images`, or ",
        ),
        (
            LARGEST | CPU,
            "suite small: batch_size: got largest on CPUs, where a machine without a l",
        ),
        (LARGEST | CPU | {"memory_limit": 10**9}, None),
        (LARGEST | CUDA, None),
        (
            CUDA | {"memory_limit": 10**9},
            "memory_limit: got 1000000000 for training on GPUs; allow",
        ),
    ],
)
def test_data_that_does_not_do_and_memory_without_a_limit_are_one_line(changes, message):
    of = machine.resolve(report(**changes))
    with refused_in_one_line(message) if message else nullcontext():
        machine.check_data(of)
        machine.check_memory(of)


@pytest.mark.parametrize(
    ("changes", "start", "allowed"),
    [
        ({"device": "cpu", "topologies": ["1n8g"]}, "1n8g", "1n4g"),
        ({"device": "cpu", "threads_per_device": 3, "topologies": ["1n2g"]}, "1n2g", "1n1g"),
        ({"device": "cpu", "topologies": ["2n1g", "1n8g"]}, "2n1g", "1n4g"),
        ({"device": "cuda", "topologies": ["1n2g"]}, "1n2g", "1n1g"),
        ({"topologies": ["1n2g", "2n2g"]} | CLUSTER, "2n2g", "1n2g"),
    ],
)
def test_a_topology_that_is_too_large_is_one_line(monkeypatch, changes, start, allowed):
    gpus(monkeypatch, GPU)
    with refused_in_one_line(f"suite small: topology {start} is too large: ") as refusal:
        check(**changes)
    assert str(refusal.value).endswith(f"; allowed: at most {allowed}")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"device": "cuda"}, "device: got cuda, and no GPU is seen here; allowed: auto, cpu, or a"),
        ({"threads_per_device": 5}, "threads_per_device: got 5; allowed: up to 4, the CPUs of"),
    ],
)
def test_a_machine_without_a_single_device_is_no_question_of_topologies(
    monkeypatch, changes, complaint
):
    gpus(monkeypatch)
    with refused_in_one_line(complaint):
        check(**changes)


def test_devices_share_too_few_cpus_if_the_report_says_so(monkeypatch):
    monkeypatch.setattr(machine, "cores", lambda: 2)
    asked = check(device="cpu", share_cpus=True, topologies=["1n2g", "1n3g", "2n1g"])
    own, shared, nodes = asked.cells(asked.suites[0])
    assert [cell.runs[0].shared_cpus for cell in (own, shared)] == [None, 2]
    assert nodes.unsupported == "2n1g is too large: this machine has CPUs for 2 devices"
    assert "CORES" not in variables_of(own.runs[0])
    assert variables_of(shared.runs[0])["CORES"] == "shared"
    # A device of more threads than there are CPUs is still none.
    with refused_in_one_line("threads_per_device: got 3; allowed: up to 2"):
        check(device="cpu", share_cpus=True, threads_per_device=3)
    with refused_in_one_line("configuration: share_cpus: got true for a cluster"):
        report(share_cpus=True, **CLUSTER)


def test_a_machine_that_is_too_small_for_some_topologies_leaves_them_out(monkeypatch):
    gpus(monkeypatch, GPU, GPU)
    host = describe()
    monkeypatch.setattr(machine, "describe_host", lambda: host)
    largest = SUITE | {"batch_size": "largest", "topologies": ["1n8g", "1n1g", "1n2g"]}
    suites = [largest, SUITE | {"name": "wide", "topologies": ["1n8g"]}]
    asked = check(device="cuda", suites=suites, build="lock")
    why = "1n8g is too large: this machine has 2 GPUs"
    assert asked.left_out() == why
    first, wide = asked.suites
    reasons = [(cell.runs[0].topology, cell.unsupported) for cell in asked.cells(first)]
    assert reasons == [("1n8g", why), ("1n1g", None), ("1n2g", None)]
    assert asked.runs(wide) == []
    assert (asked.widest_topology(first), asked.largest_shape) == ("1n2g", (1, 2))
    again = load_report(asked.model_dump(mode="json", by_alias=True))
    assert list(again.cells(again.suites[0])) == list(asked.cells(first))
    # What another machine has decided says nothing of this one.
    gpus(monkeypatch, *[GPU] * 8)
    assert machine.resolve(again).left_out() == ""
