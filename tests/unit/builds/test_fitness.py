"""A build that does not run on a node's GPUs, or with its driver, is unsupported, and why."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from reperf.builds import Build, Built, ImageBuild, LockBuild, build_of
from reperf.builds.fitness import why_unfit
from reperf.config import Container, Report, load_report
from reperf.config.site import Hardware
from reperf.host import Gpu, Host
from reperf.layout import DIAGNOSIS
from reperf.machine import check_compiler, describe_host, resolve
from reperf.records.diagnosis import hosts_seen
from reperf.systems import load_systems
from trainers.contract.compilers import compiler_for

from tests.helpers.refusal import refused_in_one_line
from tests.helpers.small_benchmark import SMALL
from tests.helpers.written_probes import PROBE, diagnosis


def host(capability: str | None, driver: str | None = "590.44.01") -> Host:
    gpu = Gpu(name="a GPU", uuid="GPU-0", memory_bytes=80 * 2**30, capability=capability)
    return describe_host().model_copy(update={"gpus": (gpu,) * 8, "driver": driver})


def in_lock(system: str) -> LockBuild:
    return LockBuild(load_systems()[system], "cuda")


def in_image(system: str, reference: str | None = None) -> ImageBuild:
    """A system in its known image, or in another one."""
    known = load_systems()[system]
    return ImageBuild(known, Container(engine="podman", image=reference or known.image.reference))


@pytest.mark.parametrize(
    ("build", "said", "there", "why"),
    [
        (in_lock("oneflow"), (), host("8.0"), None),
        (in_lock("oneflow"), (), host("9.0"), "8.6 and no PTX; the GPU's is 9.0"),
        (in_lock("pytorch"), (), host("6.1"), "12.0 and no PTX; the GPU's is 6.1"),
        (in_lock("pytorch"), (), host("7.0"), "the GPU's is 7.0; pytorch.volta.txt serves it"),
        (in_lock("pytorch"), (), host("9.0", "450.80.02"), "CUDA needs 580.65.06 or later"),
        (in_lock("pytorch"), (), host(None, None), None),
        # MXNet itself holds code for it, but not its Horovod.
        (in_lock("ngc-mxnet"), (), host("7.0"), "8.0, 8.6 and no PTX; the GPU's is 7.0"),
        # An image is held against what is declared or else what its framework says.
        (in_image("mxnet"), (), host("8.0"), None),
        (in_image("mxnet"), ("sm_100",), host("10.0"), "9.0 and no PTX; the GPU's is 10.0"),
        (in_image("mxnet"), (), host("8.0", "470.57"), "470.57; its CUDA needs 525.60.13 or later"),
        (in_image("mxnet", "me/mxnet:1"), (), host("10.0", "460.1"), None),
        (in_image("pytorch"), (), host("7.0"), None),
        (in_image("pytorch"), ("sm_75", "sm_80"), host("7.0"), "8.0 and no PTX; the GPU's is 7.0"),
        (in_image("pytorch", "me/torch:1"), ("sm_80",), host("9.0"), "PTX; the GPU's is 9.0"),
        (in_image("pytorch", "me/torch:1"), ("sm_80", "compute_80"), host("9.0"), None),
    ],
)
def test_a_builds_code_is_held_against_gpu_and_driver(
    tmp_path, monkeypatch, *, build: Build, said: tuple[str, ...], there: Host, why: str | None
):
    monkeypatch.chdir(tmp_path)
    if said:
        build.folder.mkdir(parents=True)
        Built(python="3.12.1", packages={}, architectures=said).write(build.folder)
    found = why_unfit(build, [host("8.6"), there])
    kind = "image" if isinstance(build, ImageBuild) else "lock"
    assert (found is None) == (why is None)
    assert (found or "").startswith(f"{build.system.title}, {kind}: " if why else "")
    assert (found or "").endswith(why or "")


def asked(*systems: object, precision: str = "fp32", **report: object) -> Report:
    """A report on one node of eight GPUs, or on what else is said."""
    suite = SMALL["suites"][0] | {"input": "synthetic", "systems": [*systems]}
    node = {"device": "cuda", "cluster": {"nodes": 1, "devices_per_node": 8}, "build": "lock"}
    return load_report(node | {"suites": [suite | {"precision": precision}]} | report)


def cells_of(report: Report) -> list:
    return [*report.cells(report.suites[0])]


def again(report: Report) -> Report:
    """The same, written down and read."""
    return load_report(report.model_dump(mode="json", by_alias=True))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Host]:
    """What the doctor has seen."""
    hosts: list[Host] = []
    monkeypatch.setattr("reperf.records.diagnosis.hosts_seen", lambda partition: hosts)
    return hosts


@pytest.mark.parametrize(
    ("there", "lock"),
    [
        (host("9.0"), None),
        (host("7.0"), "volta"),
        (host("9.0", "550.54.15"), "volta"),
        (host("7.0", None), "volta"),
        (host(None, None), None),
    ],
)
def test_the_first_lock_that_runs_on_the_gpus_is_taken(seen, there: Host, lock: str | None):
    seen.append(there)
    report = resolve(asked("pytorch", "oneflow"))
    runs = [run for run in report.runs(report.suites[0]) if run.system == "pytorch"]
    assert {(run.lock, build_of(run).id) for run in runs} == {(lock, f"pytorch.{lock or 'cuda'}")}
    assert "PyTorch" not in report.left_out()


@pytest.mark.parametrize(
    ("looked_at", "knows"),
    [
        ({"on_cluster": True}, True),
        ({"on_cluster": True, "partition": "older"}, False),
        ({"profile": "local"}, False),
    ],
)
def test_the_doctor_decides_for_those_nodes_alone_at_which_it_looked(
    monkeypatch, tmp_path: Path, looked_at: dict, knows: bool
):
    monkeypatch.chdir(tmp_path)
    DIAGNOSIS.parent.mkdir()
    probed = diagnosis(PROBE.model_copy(update={"host": host("9.0")}))
    probed.model_copy(update=looked_at).write(DIAGNOSIS)
    assert bool(hosts_seen(None)) == knows
    assert bool(resolve(asked("oneflow")).left_out()) == knows


@pytest.mark.parametrize(
    ("capability", "engine", "build", "container"),
    [
        ("8.0", "podman", None, False),
        ("9.0", "podman", None, True),
        ("9.0", None, None, None),  # nothing is here to run it
        ("9.0", "podman", "lock", None),
        ("10.0", "podman", None, None),  # the image has no code for it either
    ],
)
def test_an_image_is_taken_where_no_lock_runs_on_the_gpus(
    seen, monkeypatch, *, capability: str, engine: str | None, build: str, container: bool | None
):
    seen.append(host(capability))
    monkeypatch.setattr("reperf.machine.engine_here", lambda: engine)
    report = resolve(asked("oneflow", build=build))
    runs = [bool(run.container) for run in report.runs(report.suites[0])]
    assert {*runs} == ({container} - {None})
    assert bool(report.left_out()) == (container is None)
    assert report.container.engine == ("podman" if container else None)
    assert cells_of(again(report)) == cells_of(report)


MINE = {"locks": {"oneflow": "cuda"}, "unfit": {"pytorch": {"lock": "I say so"}}}


def test_what_the_gpus_decide_comes_back_with_a_report_that_was_written_down(seen):
    seen.append(host("7.0"))
    report = resolve(asked("pytorch", "ngc-mxnet", hardware=MINE))
    assert report.hardware.locks == {"pytorch": "volta"}
    assert [*report.hardware.unfit] == ["ngc-mxnet"]
    back = again(report)
    assert cells_of(back) == cells_of(report)
    assert {(run.system, run.lock) for run in back.runs(back.suites[0])} == {("pytorch", "volta")}
    assert back.left_out() == report.left_out() != ""


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_on_cpus_and_on_unseen_hardware_the_hardware_decides_nothing(device):
    report = resolve(asked("pytorch", device=device, hardware=MINE, build=None))
    assert report.hardware == Hardware()


@pytest.mark.parametrize("flags", ["avx2", "avx2 avx512bw", ""])
def test_a_precision_that_the_cpu_lacks_is_unsupported_there(flags, monkeypatch):
    monkeypatch.setattr("reperf.machine.cpu_flags", lambda: frozenset(flags.split()))
    cpus = {"device": "cpu", "cluster": None, "build": None}
    report = resolve(asked("mxnet", "ngc-mxnet", "pytorch", precision="amp", **cpus))
    why = "mxnet needs a CPU with avx512bw for amp"
    assert report.left_out() == (f"{why}: mxnet, ngc-mxnet" if flags == "avx2" else "")
    assert cells_of(again(report)) == cells_of(report)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16", "bf16", "amp"])
def test_a_precision_that_a_gpu_lacks_is_unsupported_there(precision, seen):
    report = asked("pytorch", "tensorflow2", precision=precision)
    lacks = f"{precision} needs compute capability 8.0; the GPU's is 7.0: pytorch, tensorflow2"
    seen.append(host("7.0"))
    assert resolve(report).left_out() == (lacks if precision in ("tf32", "bf16") else "")
    seen[0] = host("8.0")
    assert resolve(report).left_out() == ""


@pytest.mark.parametrize(
    ("device", "there", "found"),
    [
        ("cpu", "g++", "g++"),
        ("cpu", "gcc", None),
        ("cpu", "g++ mine CXX=mine", "mine"),
        ("cpu", "g++ CXX=nowhere", None),
        ("cuda", "clang", "clang"),
        ("cuda", "g++", None),
        ("cuda", "mine CC=mine", "mine"),
    ],
)
def test_what_compiles_while_it_trains_needs_a_compiler(
    device, there, found, tmp_path, monkeypatch
):
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, _, value in (one.partition("=") for one in there.split()):
        if value:
            monkeypatch.setenv(name, value)
        else:
            (tmp_path / name).touch(mode=0o755)
    assert compiler_for(device) == (found and str(tmp_path / found))
    here = {"device": device, "cluster": None}
    check_compiler(asked("pytorch", **here))
    compiles = asked({"system": "pytorch", "variants": "compile"}, **here)
    kind = {"cpu": "C++", "cuda": "C"}[device]
    refusal = refused_in_one_line(
        f"suite {compiles.suites[0].name}: PyTorch with compile needs a {kind} compiler, and none "
        "is here: "
    )
    with nullcontext() if found else refusal:
        check_compiler(compiles)
