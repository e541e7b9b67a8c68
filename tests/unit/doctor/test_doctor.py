"""The doctor's checks, its look at this machine, and what it refuses.

The nodes with GPUs are written by hand (written_probes.py); this machine and its kernel are real.
"""

import io
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from reperf.builds import build_of
from reperf.cli import main
from reperf.config import load_report
from reperf.doctor import hardware
from reperf.doctor.findings import Survey, find
from reperf.doctor.probe import Request, look
from reperf.doctor.screen import show
from reperf.machine import resolve
from reperf.plans.costs import needed_bytes
from reperf.records.diagnosis import (
    Diagnosis,
    Finding,
    NodeReport,
    Transfer,
    Trial,
    Verdict,
    matrix_rate,
    trial_name,
)
from rich.console import Console

from tests.helpers.written_probes import (
    BUILD,
    GIB,
    GPU_NAME,
    HOST,
    NODES,
    PROBE,
    RECIPE,
    TRIALS,
    diagnosis,
    probe,
    report,
    survey,
    trial,
    with_build,
    with_host,
    with_reading,
)

V100S = tuple(gpu.model_copy(update={"name": "Tesla V100"}) for gpu in HOST.gpus)
OLD = {"torch": "2.12.0", "numpy": "2.4.6"}

E, W = "error", "warning"
ILL = [
    (probe(shared_trouble="/data: gone"), E, "work folder", "/data: gone"),
    (with_build(trouble="no torch"), E, f"build {BUILD}", "no torch"),
    (with_build(recipe_sha256="cd" * 32), E, f"build {BUILD}", "recipe cdcdcdcdcdcd, elsewhere"),
    (with_build(packages=OLD), E, f"build {BUILD}", "torch 2.12.0 here, torch 2.13.0 elsewhere"),
    (with_build(unfit="its CUDA needs 580 or later"), E, f"build {BUILD}", "its CUDA needs 580"),
    (with_build(python="3.11.2"), E, f"build {BUILD}", "python 3.11.2 here, python 3.11.7"),
    (with_host(cores=7), E, "CPUs for a run", "7 CPUs; at least 8 needed"),
    (probe(disk_free=99 * GIB), E, "disk", "99.0 GiB free; at least 100.0 GiB needed"),
    (probe(disk_free=9 * 2**20), E, "disk", "9 MiB free; at least 100.0 GiB needed"),
    (with_host(gpus=HOST.gpus[:7]), E, "GPUs", "7 seen, runs ask for 8"),
    (with_host(gpus=()), E, "GPUs", "0 seen, runs ask for 8"),
    (with_host(gpus=V100S), E, "GPU kind", "Tesla V100, 80.0 GiB, elsewhere NVIDIA A100"),
    (with_host(gpus=(*HOST.gpus[:7], V100S[0])), E, "GPU kind", "and Tesla V100"),
    (with_reading("GPU MIG", "GPU 5 split by MIG", E), E, "GPU MIG", "GPU 5 split by MIG"),
    (with_host(cpu="Xeon"), W, "CPU", "128 x Xeon, elsewhere 128 x AMD EPYC"),
    (with_host(kernel="5.4"), W, "system", "kernel 5.4, elsewhere Ubuntu"),
    (probe(settings={"SMT": "1"}), W, "kernel settings", "SMT 1, elsewhere SMT 0"),
    (with_reading("memory", "0.5 GiB free"), W, "memory", "0.5 GiB free"),
    (with_host(driver="535.1"), W, "GPU driver", "535.1, CUDA 12.4, elsewhere 550.54.15"),
    (with_host(topology_matrix="PIX"), W, "GPU topology", ", elsewhere matrix "),
    (probe(ports=(200.0,)), W, "InfiniBand", "1 x 200 Gb/s, elsewhere 4 x 200 Gb/s"),
    (probe(ports=()), W, "InfiniBand", "none, elsewhere 4 x 200 Gb/s"),
]
"""What one node of four reports, and what is said of it."""
JUST_WELL = probe(disk_free=100 * GIB)


def wrong(case: Survey) -> list[Finding]:
    return [found for found in find(case) if found.level in (E, W)]


@pytest.mark.parametrize("well", [PROBE, JUST_WELL], ids=["all", "disk"])
def test_nothing_is_wrong_with_nodes_that_are_well(well):
    findings = [*find(survey(well))]
    assert {finding.level for finding in findings} == {"ok"}
    assert {node for finding in findings for node in finding.nodes} == set(NODES)


@pytest.mark.parametrize(("ill", "level", "check", "what"), ILL, ids=[what for *_, what in ILL])
def test_what_spoils_runs_or_may_names_the_node(ill, level, check, what):
    found = wrong(survey(ill))
    assert level == E or len(found) == 1
    (found,) = [one for one in found if one.check == check]
    assert (found.level, found.nodes) == (level, ("node3",))
    assert what in found.what


def test_a_node_without_a_compiler_cannot_train_what_compiles():
    four = survey()
    reports = [
        one.model_copy(update={"probe": with_build(compilers={"cuda": there})})
        for one, there in zip(four.node_reports, ["/usr/bin/gcc"] * 3 + [None], strict=True)
    ]
    asked = four.report.model_dump(mode="json", by_alias=True)
    asked["suites"][0]["systems"] = [{"system": "pytorch", "variants": "compile"}]
    compiling = replace(four, report=resolve(load_report(asked)), node_reports=tuple(reports))
    good, bad = (found for found in find(compiling) if found.check == f"build {BUILD}")
    assert (good.level, good.nodes) == ("ok", NODES[:3])
    assert (bad.level, bad.nodes) == (E, NODES[3:])
    assert bad.what == "no compiler, which compile needs"


def test_a_silent_node_is_an_error_and_one_out_of_service_only_if_it_is_missed():
    silent = {"probe": None, "trouble": "no answer: srun: error"}
    others = (trial("node1", "node2", "node4"),)
    (found,) = wrong(survey(node_report=silent, trials=others))
    assert (found.level, found.nodes, found.what) == ("error", ("node3",), silent["trouble"])
    down, missed = wrong(survey(node_report=silent | {"offered": False}, trials=others))
    assert (down.level, down.nodes) == ("warning", ("node3",))
    assert (missed.level, missed.what) == ("error", "3 nodes can be used, runs ask for 4")


@pytest.mark.parametrize(
    ("node_report", "said"),
    [
        ({"clock_offset": 1.0}, [("warning", "1.0 s behind this machine's")]),
        ({"clock_offset": -7.25}, [("warning", "7.2 s ahead of this machine's")]),
        ({"clock_offset": 0.99}, []),
        ({"note_arrived": False}, [("error", "the caller cannot see what it writes")]),
    ],
)
def test_a_clock_that_is_wrong_and_a_note_that_does_not_arrive_are_noticed(node_report, said):
    assert [(found.level, found.what) for found in wrong(survey(node_report=node_report))] == said


def test_the_node_with_another_value_is_the_odd_one_wherever_it_stands():
    for node in NODES:
        (found,) = wrong(survey(with_host(driver="535.1"), node=node))
        assert found.nodes == (node,)


def test_bus_bandwidth_is_that_of_the_busiest_link():
    transfer = Transfer(bytes=10**9, seconds=0.5)
    assert transfer.bus_bandwidth(2) == 2e9  # each of two ranks sends all of it once
    assert transfer.bus_bandwidth(4) == 3e9


def with_trial(*nodes: str, **changes: object) -> Survey:
    """Four nodes of whose trials the one on these nodes is unusual."""
    trials = (trial(*nodes, **changes) if one.nodes == nodes else one for one in TRIALS)
    return survey(trials=tuple(trials))


def adding_up(*nodes: str, seconds: float) -> Survey:
    return with_trial(*nodes, transfers=(Transfer(bytes=64 * 10**6, seconds=seconds),))


@pytest.mark.parametrize(
    ("nodes", "half", "what"),
    [
        (NODES, 0.124 / 50, "32 ranks by NCCL 2.29.7: 64 MB at 0.124 GB/s; the ports carry 100"),
        (("node3",), 0.003, "8 ranks by NCCL 2.29.7: 64 MB at 0.112 GB/s; the fastest node reac"),
    ],
)
def test_an_all_reduce_below_half_of_the_ports_or_of_the_fastest_node_is_a_warning(
    nodes, half, what
):
    (found,) = wrong(adding_up(*nodes, seconds=1))
    assert (found.check, found.level, found.nodes) == (f"all-reduce of {BUILD}", W, nodes)
    assert found.what.startswith(what)
    assert not wrong(adding_up(*nodes, seconds=0.98 * half))
    assert len(wrong(adding_up(*nodes, seconds=1.02 * half))) == 1


@pytest.mark.parametrize(("nodes", "check"), [(("node3",), "devices"), (NODES, "all-reduce")])
def test_trials_that_fail_are_errors_where_they_failed(nodes, check):
    (found,) = wrong(with_trial(*nodes, trouble="failed, exit 1: no", log="logs/x.log"))
    assert (found.check, found.level) == (f"{check} of {BUILD}", E)
    assert (found.nodes, found.what) == (nodes, "failed, exit 1: no")
    assert found.advice == "what the ranks printed is in logs/x.log"


def test_what_every_node_does_as_well_is_one_line_with_both_ends():
    well = [one for one in find(survey()) if one.check.endswith(f" of {BUILD}")]
    assert {(one.level, one.nodes) for one in well} == {("ok", NODES)}
    assert [one.what for one in well] == [
        f"8 x {GPU_NAME}; a convolution is within 4e-07 of numpy's",
        "8 ranks by NCCL 2.29.7: 64 MB at 74.7 GB/s",
        "32 ranks by NCCL 2.29.7: 64 MB at 82.7 GB/s",
    ]
    quicker = adding_up("node2", seconds=0.001)
    assert any(one.what.endswith("64 MB at 74.7 (node1) to 112 GB/s") for one in find(quicker))


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("size_is_known", [True, False])
def test_a_report_needs_room_for_its_runs_and_builds(device, size_is_known, tmp_path, monkeypatch):
    """As docs/doctor.md promises: 2 MB a run, builds as large as they are known to be."""
    monkeypatch.chdir(tmp_path)
    build_bytes = 5e9 if size_is_known else {"cuda": 12e9, "cpu": 2e9}[device]
    sizes = (2e9, 5e9) if size_is_known else None
    monkeypatch.setattr("reperf.plans.costs.sizes_of", lambda _: sizes)
    asked, more = (report(device=device, repeats=repeats) for repeats in (1, 4))
    build = build_of(asked.runs(asked.suites[0])[0]).id
    needed = needed_bytes(asked, {build: RECIPE})
    assert needed_bytes(asked, {build: None}) == needed + build_bytes
    assert needed_bytes(more, {build: RECIPE}) == needed + 3 * 2 * 2e6  # on two topologies


def test_all_that_the_hardware_lacks_is_one_row():
    lacking = {"CPU governor", "GPU clocks", "GPU MIG"}
    readings = {check: one for check, one in PROBE.readings.items() if check not in lacking}
    *_, found = find(survey(probe(readings=readings)))
    assert (found.level, found.nodes) == ("not there", ("node3",))
    assert found.what == "CPU governor, GPU clocks, GPU MIG: none here, or not reported"


@pytest.mark.parametrize(
    ("note", "trouble"),
    [("a secret", ""), ("another", "is another folder"), (None, "No such file")],
)
def test_this_machine_answers_with_what_it_is_and_whether_the_folder_is_the_callers(
    tmp_path, note, trouble
):
    if note:
        (tmp_path / "meeting").mkdir()
        (tmp_path / "meeting/caller").write_text(note)
    asked = Request(node="here", folder=tmp_path, meeting="meeting", secret="a secret", runs=())
    seen = look(asked)
    assert trouble in seen.shared_trouble
    assert bool(seen.shared_trouble) == (note != "a secret")
    assert trouble or (tmp_path / "meeting/here").read_text() == "a secret"
    assert seen.host.hostname == os.uname().nodename
    assert {"memory", "other processes"} <= seen.readings.keys() <= hardware.ADVICE.keys()
    assert seen.disk_free > 0


# Before all others where it may be: on a loaded machine it would not keep a CPU busy.
KEEPS_A_CPU_BUSY = """
import contextlib, os
with contextlib.suppress(PermissionError):
    os.nice(-20)
while True:
    pass
"""


def test_a_process_that_keeps_a_cpu_busy_is_found(monkeypatch):
    monkeypatch.setattr(hardware, "BUSY_PERCENT", 3)  # others may take its CPU for a while
    with subprocess.Popen([sys.executable, "-c", KEEPS_A_CPU_BUSY]) as busy:
        end, found = time.monotonic() + 100, False
        while not found and time.monotonic() < end:
            found = f"({busy.pid})" in hardware.readings()["other processes"].what
        busy.kill()
    assert found


def kernel(root: Path, **files: str) -> Path:
    """Files as the kernel shows them."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def test_clocks_quotas_and_settings_are_read_as_the_kernel_shows_them(tmp_path, monkeypatch):
    monkeypatch.setattr(hardware, "cores", lambda: 2)
    files = {
        "proc/self/cgroup": "0::/jobs/mine",
        "sys/fs/cgroup/jobs/cpu.max": "150000 100000",
        "sys/fs/cgroup/jobs/mine/cpu.max": "max 100000",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    }
    for cpu, governor in enumerate(("performance", "powersave")):
        folder = f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
        files |= {
            f"{folder}/scaling_governor": governor,
            f"{folder}/scaling_max_freq": f"{3000 - cpu}000",
            f"{folder}/cpuinfo_max_freq": "3000000",
        }
    root = kernel(tmp_path, **files)
    wrong = {name: one.what for name, one in hardware.readings(root).items() if one.level != "ok"}
    assert wrong["CPU governor"] == "performance, powersave"
    assert wrong["CPU clock"] == "2999 of 3000 MHz"
    assert wrong["CPU quota"] == "1.5 of 2 CPUs"
    assert hardware.settings(root) == {"transparent huge pages": "madvise"}
    fine = {"sys/fs/cgroup/jobs/cpu.max": "200000 100000"}
    assert hardware.readings(kernel(tmp_path, **fine))["CPU quota"].level == "ok"


@pytest.mark.parametrize(("load", "fine"), [(2.0, True), (2.1, False)])
def test_a_load_above_half_of_the_cpus_is_other_work(monkeypatch, load, fine):
    monkeypatch.setattr(hardware, "cores", lambda: 4)
    monkeypatch.setattr(hardware, "BUSY_PERCENT", 1000)
    monkeypatch.setattr(hardware.psutil, "getloadavg", lambda: (load, 0, 0))
    assert (hardware.readings()["other processes"].level == "ok") == fine


@pytest.mark.parametrize(("free", "fine"), [(2**30, True), (2**30 - 1, False)])
def test_memory_and_shared_memory_have_a_minimum(monkeypatch, free, fine):
    monkeypatch.setattr(
        hardware.psutil, "virtual_memory", lambda: SimpleNamespace(available=free, total=2**31)
    )
    monkeypatch.setattr(hardware.shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    seen = hardware.readings()
    assert [seen[name].level == "ok" for name in ("memory", "shared memory")] == [fine, fine]


BRAKE = hardware.pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown
NVML = {
    "ApplicationsClock": 1410,
    "DefaultApplicationsClock": 1410,
    "EnforcedPowerLimit": 400_000,
    "PowerManagementDefaultLimit": 400_000,
    "MigMode": [0, 0],
    "CurrentClocksEventReasons": hardware.pynvml.nvmlClocksEventReasonGpuIdle,
    "ComputeRunningProcesses": [],
}
"""What NVML answers of a GPU that is well."""


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, None),
        ({"ApplicationsClock": 900}, (W, "GPU clocks", "900 of 1410 MHz")),
        ({"EnforcedPowerLimit": 300_000}, (W, "GPU power limit", "300 of 400 W")),
        ({"MigMode": [1, 1]}, (E, "GPU MIG", "split by MIG")),
        ({"ComputeRunningProcesses": [SimpleNamespace(pid=4711)]}, (W, "GPU processes", "4711")),
        ({"CurrentClocksEventReasons": BRAKE}, (W, "GPU slowdown", "slowed by power brake")),
    ],
)
def test_a_gpu_is_read_as_nvml_shows_it(monkeypatch, changes, wrong):
    """By answers written by hand: no test machine has GPUs."""
    for name, well in NVML.items():
        answers = {"a": well, "b": changes.get(name, well)}
        monkeypatch.setattr(
            hardware.pynvml, f"nvmlDeviceGet{name}", lambda gpu, *_, answers=answers: answers[gpu]
        )
    monkeypatch.setattr(hardware, "gpu_handles", lambda: nullcontext(["a", "b"]))
    readings = hardware.gpu_readings()
    assert [name for name in hardware.ADVICE if name.startswith("GPU")] == [*readings]
    found = [(one.level, name, one.what) for name, one in readings.items() if one.level != "ok"]
    assert found == ([(wrong[0], wrong[1], f"GPU 1 {wrong[2]}")] if wrong else [])


def test_active_ports_are_read_as_the_kernel_shows_them(tmp_path):
    files = {
        f"sys/class/infiniband/mlx5_{number}/ports/1/{name}": text
        for number, state in enumerate(("4: ACTIVE", "1: DOWN"))
        for name, text in {"state": state, "rate": "200 Gb/sec (4X HDR)"}.items()
    }
    assert hardware.active_ports(kernel(tmp_path, **files)) == (200,)
    assert hardware.active_ports(tmp_path / "nowhere") == ()


def test_a_run_learns_how_fast_its_devices_multiply_from_the_same_build_alone(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    run = report().run("resnet50", "pytorch", "1n1g", 1)
    known = {"name": trial_name(run), "build": BUILD, "nodes": ("node3",), "threads": run.threads}
    tried = Trial(**known, matrix_rates={"float16": 3e14})
    made = diagnosis(with_build(recipe_sha256=build_of(run).recipe_digest), trials=(tried,))
    assert matrix_rate(run, "node3", "float16") is None  # nobody has looked
    made.write(Path("results/doctor.json"))
    assert Diagnosis.read("results/doctor.json") == made
    assert matrix_rate(run, "node3", "float16") == 3e14
    assert matrix_rate(run, "node3", "float32") is None
    assert matrix_rate(run, "node4", "float16") is None  # of another recipe
    assert matrix_rate(run.model_copy(update={"threads": 99}), "node3", "float16") is None


def shown(made: Diagnosis, **console: object) -> str:
    stream = io.StringIO()
    show(made, Console(file=stream, **console))
    return stream.getvalue()


def test_a_pipe_gets_a_line_a_finding_and_a_terminal_a_table():
    slow = {"CPU clock": Verdict(W, "9 of 10 MHz", "raise it")}
    made = diagnosis(probe(readings=slow))
    lines = shown(made).splitlines()
    assert len(lines) == len(made.findings)
    assert "warning\tCPU clock\tnode3\t9 of 10 MHz\traise it" in lines
    assert "ok\tanswer\tall 4 nodes\tanswered" in lines
    table = shown(made, force_terminal=True, width=120)
    assert "9 of 10 MHz" in table and "\x1b[" in table


@pytest.mark.parametrize(("terminal", "lines"), [(True, 3), (False, 1)])
def test_what_was_found_is_shown_letter_by_letter(terminal, lines):
    """On a terminal there are headings, and the advice has a line of its own."""
    hostile = "\x1b[31mred\r\n\u202e [bold]x[/bold]"
    finding = Finding(check=hostile, level=E, nodes=(hostile,), what=hostile, advice=hostile)
    made = diagnosis().model_copy(update={"findings": (finding,)})
    said = shown(made, force_terminal=terminal, width=400, color_system=None)
    assert said.count(r"\x1b[31mred\r\n\u202e [bold]x[/bold]") == 4
    assert said.replace("\n", "").replace("\t", "").isprintable()
    assert len(said.splitlines()) == lines


def test_nodes_are_named_where_somebody_must_go_there():
    nodes = tuple(f"node{number}" for number in range(1, 65))
    many = diagnosis().model_copy(
        update={"node_reports": tuple(NodeReport(node=node) for node in nodes)}
    )

    def place(level: str, of: tuple[str, ...]) -> str:
        return many.place(Finding(check="disk", level=level, nodes=of, what=""))

    assert place("ok", nodes) == place("error", nodes) == "all 64 nodes"
    assert place("ok", nodes[1:]) == "63 of 64 nodes"
    assert place("ok", nodes[:2]) == "node1, node2"
    assert place("error", nodes[:6]) == "node1, node2, node3, node4, node5, node6"


SUITE = """\
suites: [{name: one, workload: resnet50, precision: fp32, batch_size: 1, input: synthetic,
          systems: [pytorch]}]
"""
FILES = {
    "text": "{a: [",
    "big.yaml": f"topologies: [1n9999g]\ndevice: cpu\n{SUITE}",
    "images.yaml": f"images: {{pytorch: /nowhere/x.sif}}\ndevice: cpu\n{SUITE}",
    "far.yaml": f"cluster: {{nodes: 4, devices_per_node: 8}}\n{SUITE}",
}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("--profile local", "profile local: not there; allowed: hosts, slurm, none for this mac"),
        ("", "config.yaml: No such file or directory; run it in reperf's folder, or name a report"),
        ("--profile slurm", "reports/dlperf.yaml: No such file or directory"),
        ("--configfile images.yaml", "images.yaml: images.pytorch: got '/nowhere/x.sif'"),
        ("--configfile no.yaml", "no.yaml: No such file or directory"),
        ("--configfile text", "text: is not YAML: "),
        ("--configfile big.yaml", "big.yaml: suite one: topology 1n9999g is too large"),
        (
            "--profile slurm --configfile big.yaml",
            "big.yaml: cluster: missing; --profile slurm and --jobs need it: add site.yaml",
        ),
        ("--configfile far.yaml", "far.yaml: cluster: the report needs it"),
        ("--profile slurm --configfile far.yaml", "no Slurm on this machine: sbatch not found"),
    ],
)
def test_bad_input_is_one_line(tmp_path, monkeypatch, capsys, arguments, line):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["doctor", *arguments.split()]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    begun, refusal = printed.err.splitlines()
    assert begun == "reading the report .."
    assert refusal.startswith(f"reperf: {line}")
    assert not (tmp_path / "results").exists()
