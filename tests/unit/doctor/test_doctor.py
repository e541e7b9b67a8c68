"""The doctor's checks, its look at this machine, and what it refuses.

The nodes with GPUs are written by hand (written_probes.py); this machine and its kernel are real.
"""

import io
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from reperf.builds import build_of
from reperf.cli import main
from reperf.config import load_report
from reperf.doctor import hardware
from reperf.doctor.build_table import BuildRow, build_rows
from reperf.doctor.checks import find
from reperf.doctor.diagnosis import Diagnosis, Finding, Probe, Request, Transfer, Trial, Visit
from reperf.doctor.need import needed_by
from reperf.doctor.probe import look
from reperf.doctor.rates import matrix_rate
from reperf.doctor.screen import show
from reperf.doctor.trials import name_of
from reperf.machine import resolve
from reperf.tables import SUMMARY
from rich.console import Console

from tests.helpers.written_probes import (
    BUILD,
    ENVIRONMENT,
    GIB,
    GPU,
    HOST,
    NODES,
    PORT,
    PROBE,
    TRIALS,
    case,
    diagnosis,
    report,
    trial,
    with_gpu,
    with_part,
)

OTHER_GPUS = tuple(gpu.model_copy(update={"name": "Tesla V100"}) for gpu in HOST.gpus)


def environment(**changes: object):
    state = ENVIRONMENT.model_copy(update=changes)
    return PROBE.model_copy(update={"environments": {BUILD: state}})


def without(*parts: str):
    return PROBE.model_copy(update=dict.fromkeys(parts, ()))


ERRORS = [
    (PROBE.model_copy(update={"shared_trouble": "/data: gone"}), "work folder", "/data: gone"),
    (environment(trouble="no torch"), f"build {BUILD}", "no torch"),
    (environment(recipe_sha256="cd" * 32), f"build {BUILD}", "recipe cdcdcdcdcdcd, elsewhere"),
    (
        environment(packages={"torch": "2.12.0", "numpy": "2.4.6"}),
        f"build {BUILD}",
        "torch 2.12.0 here, torch 2.13.0 elsewhere",
    ),
    (environment(unfit="its CUDA needs 580 or later"), f"build {BUILD}", "its CUDA needs 580"),
    (environment(python="3.11.2"), f"build {BUILD}", "python 3.11.2 here, python 3.11.7"),
    (with_part("host", cores=4), "CPUs for a run", "4 CPUs; at least 8 CPUs needed"),
    (with_part("space", disk_free=GIB), "disk", "1.0 GiB; at least 100.0 GiB needed"),
    (with_part("space", inodes_free=0), "inodes", "no more files can be created"),
    (PROBE.model_copy(update={"gpus": PROBE.gpus[:7]}), "GPUs", "7 seen, runs ask for 8"),
    (without("gpus"), "GPUs", "0 seen, runs ask for 8"),
    (with_part("host", gpus=OTHER_GPUS), "GPU kind", "Tesla V100, 80.0 GiB, elsewhere NVIDIA A100"),
    (with_part("host", gpus=(*HOST.gpus[:7], OTHER_GPUS[0])), "GPU kind", "and Tesla V100"),
    (with_gpu(row_remap_failed=True), "GPU memory errors", "GPU 5 has a row remapping that failed"),
    (with_gpu(row_remap_pending=True), "GPU memory errors", "GPU 5 has a row remapping that waits"),
    (with_gpu(mig=True), "GPU MIG", "GPU 5 is split by MIG"),
]
WARNINGS = [
    (with_part("host", cpu="Xeon"), "CPU", "128 x Xeon, elsewhere 128 x AMD EPYC"),
    (with_part("host", kernel="5.4"), "system", "kernel 5.4, elsewhere Ubuntu"),
    (with_part("processor", governors={"powersave": 128}), "CPU governor", "powersave on 128 CPUs"),
    (with_part("processor", allowed_megahertz=1500), "CPU clock", "limited to 1500 of 3400 MHz"),
    (with_part("processor", quota=8.0), "CPU quota", "8 of 128 CPUs"),
    (with_part("processor", settings={"SMT": "1"}), "kernel settings", "SMT 1, elsewhere SMT 0"),
    (with_part("processor", load=90.0), "other processes", "load 90.0 on 128 CPUs"),
    (with_part("space", memory_available=GIB), "memory", "1.0 GiB; at least 512.0 GiB needed"),
    (with_part("space", shared_memory_free=64 * 2**20), "shared memory", "0.1 GiB"),
    (with_part("space", swap_used=32 * GIB), "swap", "32.0 GiB in use"),
    (with_part("host", driver="535.1"), "GPU driver", "535.1, CUDA 12.4, elsewhere 550.54.15"),
    (with_part("host", topology_matrix="PIX"), "GPU topology", "connected differently"),
    (with_gpu(slowed_by=("power brake",)), "GPU clocks", "GPU 5 is slowed by power brake"),
    (with_gpu(application_sm_megahertz=900), "GPU clocks", "GPU 5 is set to 900 of 1410 MHz"),
    (with_gpu(power_limit_watts=300.0), "GPU power limit", "GPU 5 may take 300 of 400 W"),
    (with_gpu(persistent=False), "GPU persistence", "GPU 5 is not persistent"),
    (with_gpu(ecc=False), "GPU memory errors", "GPU 5 has ECC off"),
    (with_gpu(uncorrected_errors=2), "GPU memory errors", "GPU 5 had 2 uncorrected errors"),
    (with_gpu(nvlinks=(True, False)), "NVLink", "GPU 5 lacks NVLink 1"),
    (with_gpu(processes=(4711,)), "GPU processes", "GPU 5 is used by process 4711"),
    (
        PROBE.model_copy(update={"fabric": (PORT.model_copy(update={"state": "DOWN"}), PORT)}),
        "InfiniBand",
        "1 x 200 Gb/s InfiniBand, elsewhere 4 x 200 Gb/s",
    ),
    (without("fabric"), "InfiniBand", "none, elsewhere 4 x 200 Gb/s InfiniBand"),
]


def wrong(case):
    """What is not well: check, level, nodes, what."""
    return [one for one in find(case) if one.level in ("warning", "error")]


def test_nothing_is_wrong_with_nodes_that_are_well():
    findings = find(case())
    assert {finding.level for finding in findings} == {"ok"}
    assert {finding.nodes for finding in findings} == {NODES}


@pytest.mark.parametrize(("ill", "check", "what"), ERRORS)
def test_what_spoils_runs_is_an_error_that_names_the_node(ill, check, what):
    (found,) = [one for one in wrong(case(ill)) if one.check == check]
    assert (found.level, found.nodes) == ("error", ("node3",))
    assert what in found.what


@pytest.mark.parametrize(("ill", "check", "what"), WARNINGS)
def test_what_may_spoil_runs_is_a_warning_that_names_the_node(ill, check, what):
    (found,) = wrong(case(ill))
    assert (found.check, found.level, found.nodes) == (check, "warning", ("node3",))
    assert what in found.what


def test_a_node_without_a_compiler_cannot_train_what_compiles():
    compilers = [{"cuda": "/usr/bin/gcc"}] * 3 + [{"cuda": None}]
    one = case()
    visits = [
        visit.model_copy(update={"probe": environment(compilers=there)})
        for visit, there in zip(one.visits, compilers, strict=True)
    ]
    asked = one.report.model_dump(mode="json", by_alias=True)
    asked["suites"][0]["systems"] = [{"system": "pytorch", "variants": "compile"}]
    compiling = replace(one, report=resolve(load_report(asked)), visits=tuple(visits))
    good, bad = (found for found in find(compiling) if found.check == f"compiler of {BUILD}")
    assert (good.level, good.nodes, good.what) == ("ok", NODES[:3], "/usr/bin/gcc")
    assert (bad.level, bad.nodes, bad.what) == ("error", NODES[3:], "none, which compile needs")


def test_a_silent_node_is_an_error_and_one_out_of_service_only_if_it_is_missed():
    silent = {"probe": None, "trouble": "no answer: srun: error"}
    others = (trial("node1", "node2", "node4"),)
    (found,) = wrong(case(visit=silent, trials=others))
    assert (found.level, found.nodes, found.what) == ("error", ("node3",), silent["trouble"])
    down, missed = wrong(case(visit=silent | {"offered": False}, trials=others))
    assert (down.level, down.nodes) == ("warning", ("node3",))
    assert (missed.level, missed.what) == ("error", "3 nodes can be used, runs ask for 4")


def test_a_clock_that_is_wrong_and_a_note_that_does_not_arrive_are_noticed():
    (found,) = wrong(case(visit={"clock_offset": 7.25}))
    assert (found.level, found.what) == ("warning", "7.2 s behind this machine's")
    (found,) = wrong(case(visit={"note_arrived": False}))
    assert (found.level, found.what) == ("error", "the caller cannot see what it writes")


def test_the_node_with_another_value_is_the_odd_one_wherever_it_stands():
    for node in NODES:
        (found,) = wrong(case(with_part("host", driver="535.1"), node=node))
        assert found.nodes == (node,)


def test_bus_bandwidth_is_that_of_the_busiest_link():
    transfer = Transfer(bytes=10**9, seconds=0.5)
    assert transfer.bus_bandwidth(2) == 2e9  # each of two ranks sends all of it once
    assert transfer.bus_bandwidth(4) == 3e9


def trials_with(unusual: Trial) -> tuple[Trial, ...]:
    """All trials, one of them replaced by an unusual one on the same nodes."""
    return tuple(unusual if one.nodes == unusual.nodes else one for one in TRIALS)


SLOW = (Transfer(bytes=64 * 10**6, seconds=1),)


def test_an_all_reduce_far_below_the_ports_rate_is_a_warning():
    (found,) = wrong(case(trials=trials_with(trial(*NODES, transfers=SLOW))))
    assert (found.check, found.level) == (f"all-reduce of {BUILD}", "warning")
    assert found.what == "0.124 GB/s over ports of 100 GB/s"


def test_a_node_whose_own_devices_add_up_slower_than_others_is_named():
    (found,) = wrong(case(trials=trials_with(trial("node3", transfers=SLOW))))
    assert (found.check, found.level) == (f"all-reduce of {BUILD}", "warning")
    assert found.nodes == ("node3",)
    assert found.what == (
        "8 ranks by NCCL 2.29.7: 64 MB at 0.112 GB/s; the fastest node reaches 74.7 GB/s"
    )


def test_a_trial_that_fails_is_an_error_where_it_failed():
    for nodes, check in ((("node3",), "devices"), (NODES, "all-reduce")):
        failed = trial(*nodes, trouble="failed, exit 1: no", log="logs/x.log")
        (found,) = wrong(case(trials=trials_with(failed)))
        assert (found.check, found.level) == (f"{check} of {BUILD}", "error")
        assert (found.nodes, found.what) == (nodes, "failed, exit 1: no")
        assert found.advice == "what the ranks printed is in logs/x.log"


NEIGHBOURS = "NCCL 2.29.7: to the next rank 64 MB at {0} GB/s; back 64 MB at {0} GB/s"


def test_what_every_node_does_as_well_is_one_line_with_both_ends():
    well = [one for one in find(case()) if one.check.endswith(f" of {BUILD}")]
    quicker = trials_with(trial("node2", transfers=(Transfer(bytes=64 * 10**6, seconds=0.001),)))
    assert [(one.level, one.nodes, one.what) for one in well] == [
        ("ok", NODES, f"8 x {GPU.name}; a convolution is within 4e-07 of numpy's"),
        ("ok", NODES, "8 ranks by NCCL 2.29.7: 64 MB at 74.7 GB/s"),
        (
            "ok",
            NODES,
            f"8 ranks by {NEIGHBOURS.format(64)}; slowest from rank 0 to rank 1 on node1",
        ),
        ("ok", NODES, "32 ranks by NCCL 2.29.7: 64 MB at 82.7 GB/s"),
        ("ok", NODES, f"32 ranks by {NEIGHBOURS.format(32)}; slowest from rank 7 to rank 8"),
    ]
    assert any(one.what.endswith("64 MB at 74.7 to 112 GB/s") for one in find(case(trials=quicker)))
    hops = trial("node3").hops
    slow = (*hops[:8], hops[8].model_copy(update={"seconds": 0.064}), *hops[9:])
    (said,) = (
        one.what
        for one in find(case(trials=trials_with(trial("node3", hops=slow))))
        if one.what.startswith("8 ranks") and "slowest" in one.what
    )
    assert "to the next rank 64 MB at 1 to 64 GB/s; back 64 MB at 64 GB/s" in said
    assert said.endswith("; slowest from rank 4 to rank 5 on node3")


def test_the_table_has_a_row_for_each_build_and_names_where_it_fails():
    def row(*ill: Probe, trials: tuple[Trial, ...] = TRIALS) -> BuildRow:
        (only,) = build_rows(diagnosis(*ill).model_copy(update={"trials": trials}))
        return only

    assert row() == BuildRow(
        build=BUILD,
        starts="yes",
        devices=f"8 x {GPU.name}",
        convolution="4e-07",
        in_a_node="74.7 GB/s",
        over_nodes="82.7 GB/s",
        neighbours_in_a_node="64 GB/s",
        neighbours_over_nodes="32 GB/s",
        library="NCCL 2.29.7",
        loader="–",  # noqa: RUF001
    )
    read = trials_with(trial("node3", loaded=41_234.5, needed=47_200.0))
    assert row(trials=read).loader == "41,234 samples/s, 47,200 needed"
    failed = trials_with(trial("node3", trouble="failed, exit 1: no"))
    assert row(trials=failed).devices == f"8 x {GPU.name}; fails on node3"
    ill = row(environment(trouble="no torch"), trials=())
    assert (ill.build, ill.starts, ill.devices) == (BUILD, "not on node3", "–")  # noqa: RUF001


def test_a_node_that_reads_slower_than_its_devices_train_is_a_warning():
    (found,) = wrong(case(trials=trials_with(trial("node3", loaded=41_000.0, needed=47_200.0))))
    assert (found.check, found.level, found.nodes) == (f"loader of {BUILD}", "warning", ("node3",))
    assert found.what == "41,000 samples/s, 47,200 needed"
    for needed in (None, 40_000.0):
        assert not wrong(case(trials=trials_with(trial("node3", loaded=41_000.0, needed=needed))))


def test_what_devices_need_is_what_they_trained_without_a_loader(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = case().report
    (suite,) = asked.suites
    run = asked.runs(suite)[0]
    assert needed_by(asked, run) is None  # nothing has been measured
    cell = dict.fromkeys(SUMMARY, "") | run.identity | {"variant": "", "status": "ok"}
    cell |= {"throughput_median": 5900.0, "unit": "images/s"}
    faster = cell | {"topology": "2n4g", "num_nodes": 2, "devices_per_node": 4}
    faster |= {"throughput_median": 8 * 6000.0}
    failed = cell | {"topology": "1n2g", "status": "failed", "throughput_median": 9e9}
    (tmp_path / "results").mkdir()
    pd.DataFrame([cell, faster, failed]).to_csv("results/summary.csv", index=False)
    assert needed_by(asked, run) == 8 * 6000
    other = run.model_copy(update={"precision": "amp"})
    assert needed_by(asked, other) is None


def test_one_device_has_nothing_to_add_up_and_that_is_no_fault():
    alone = {"world_size": 1, "devices": (GPU.name,), "library": "", "transfers": (), "hops": ()}
    single = trial("node3", **alone)
    found = find(case(trials=(single,)))[-1]
    assert (found.level, found.what) == ("not there", "one device, nothing to add up")


def test_what_the_hardware_lacks_is_not_there_rather_than_ok():
    bare = with_part("processor", governors=None, megahertz=None)
    levels = {one.check: one.level for one in find(case(bare)) if "node3" in one.nodes}
    assert levels["CPU governor"] == levels["CPU clock"] == "not there"
    told_nothing = with_gpu(ecc=None).model_copy(
        update={"gpus": (with_gpu(ecc=None, mig=None).gpus[5],) * 8}
    )
    levels = {one.check: one.level for one in find(case(told_nothing)) if "node3" in one.nodes}
    assert levels["GPU memory errors"] == levels["GPU MIG"] == "not there"


def test_this_machine_answers_with_what_it_is(tmp_path):
    (tmp_path / "meeting").mkdir()
    (tmp_path / "meeting/caller").write_text("a secret")
    asked = Request(node="here", folder=tmp_path, meeting="meeting", secret="a secret", runs=())
    probe = look(asked)
    assert probe.shared_trouble == ""
    assert (tmp_path / "meeting/here").read_text() == "a secret"
    assert probe.host.hostname == os.uname().nodename
    assert 0 < probe.space.memory_available <= probe.host.memory_bytes
    assert probe.space.disk_free > 0
    assert len(probe.gpus) == len(probe.host.gpus)


@pytest.mark.parametrize(
    ("note", "what"), [("another", "is another folder"), (None, "No such file")]
)
def test_a_folder_that_is_not_the_callers_is_noticed(tmp_path, note, what):
    if note:
        (tmp_path / "meeting").mkdir()
        (tmp_path / "meeting/caller").write_text(note)
    asked = Request(node="here", folder=tmp_path, meeting="meeting", secret="a secret", runs=())
    assert what in look(asked).shared_trouble


# Before all others where it may be: on a loaded machine it would not keep a CPU busy.
KEEPS_A_CPU_BUSY = """
import contextlib, os
with contextlib.suppress(PermissionError):
    os.nice(-20)
while True:
    pass
"""


def test_a_process_that_keeps_a_cpu_busy_is_found():
    with subprocess.Popen([sys.executable, "-c", KEEPS_A_CPU_BUSY]) as busy:
        end = time.monotonic() + 240  # others may take its CPU for a while
        found = False
        while not found and time.monotonic() < end:
            found = busy.pid in [one.pid for one in hardware.processor().busy]
        busy.kill()
    assert found


def kernel(root: Path, **files: str) -> Path:
    """Files as the kernel shows them."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def test_clocks_quotas_and_settings_are_read_as_the_kernel_shows_them(tmp_path):
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
            f"{folder}/scaling_cur_freq": f"{800 + cpu}000",
            f"{folder}/scaling_max_freq": f"{3000 - cpu}000",
            f"{folder}/cpuinfo_max_freq": "3000000",
        }
    cpu = hardware.processor(kernel(tmp_path, **files))
    assert cpu.governors == {"performance": 1, "powersave": 1}
    assert cpu.megahertz == (800, 801)
    assert (cpu.allowed_megahertz, cpu.possible_megahertz) == (2999, 3000)
    assert cpu.quota == 1.5
    assert cpu.settings == {"transparent huge pages": "madvise"}


def test_fabric_ports_are_read_as_the_kernel_shows_them(tmp_path):
    port = "sys/class/infiniband/mlx5_2/ports/1"
    files = {
        f"{port}/state": "4: ACTIVE",
        f"{port}/rate": "200 Gb/sec (4X HDR)",
        f"{port}/link_layer": "InfiniBand",
    }
    (found,) = hardware.fabric_ports(kernel(tmp_path, **files))
    assert (found.device, found.port, found.active) == ("mlx5_2", 1, True)
    assert (found.gigabits, found.link) == (200, "InfiniBand")
    assert hardware.fabric_ports(tmp_path / "nowhere") == ()


def test_a_diagnosis_is_read_as_it_was_written(tmp_path):
    made = diagnosis(with_gpu(mig=True))
    made.write(tmp_path / "results/doctor.json")
    assert Diagnosis.read(tmp_path / "results/doctor.json") == made


def test_a_run_learns_how_fast_its_devices_multiply_from_the_same_build_alone(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    run = report().run("resnet50", "pytorch", "1n1g", 1)
    own = {"recipe_sha256": build_of(run).recipe_digest}
    tried = TRIALS[0].model_copy(
        update={
            "name": name_of(run),
            "nodes": ("node3",),
            "threads": run.threads,
            "matrix_rates": {"float16": 3e14},
        }
    )
    probe = PROBE.model_copy(update={"environments": {BUILD: ENVIRONMENT.model_copy(update=own)}})
    made = diagnosis(probe).model_copy(update={"trials": (tried,)})
    assert matrix_rate(run, "node3", "float16") is None  # nobody has looked
    made.write(tmp_path / "results/doctor.json")
    assert matrix_rate(run, "node3", "float16") == 3e14
    assert matrix_rate(run, "node3", "float32") is None
    assert matrix_rate(run, "node4", "float16") is None  # of another recipe
    assert matrix_rate(run.model_copy(update={"threads": 99}), "node3", "float16") is None


def test_a_pipe_gets_a_line_a_finding_and_a_terminal_a_table():
    made = diagnosis(with_gpu(mig=True))
    pipe, terminal = io.StringIO(), io.StringIO()
    show(made, Console(file=pipe))
    show(made, Console(file=terminal, force_terminal=True, width=120))
    lines = pipe.getvalue().splitlines()
    assert len(lines) == len(made.findings)
    assert "error\tGPU MIG\tnode3\tGPU 5 is split by MIG\ta run needs whole GPUs" in lines
    assert "ok\tanswer\tall 4 nodes\tanswered" in lines
    assert "GPU 5 is split by MIG" in terminal.getvalue()
    assert "\x1b[" in terminal.getvalue()


def test_nodes_are_named_where_somebody_must_go_there():
    nodes = tuple(f"node{number}" for number in range(1, 65))
    many = diagnosis().model_copy(update={"visits": tuple(Visit(node=node) for node in nodes)})

    def place(level: str, of: tuple[str, ...]) -> str:
        return many.place(Finding(check="disk", level=level, nodes=of, what=""))

    assert place("ok", nodes) == place("error", nodes) == "all 64 nodes"
    assert place("ok", nodes[1:]) == "63 of 64 nodes"
    assert place("ok", nodes[:2]) == "node1, node2"
    assert place("error", nodes[:6]) == "node1, node2, node3, node4, node5, node6"


BAD_INPUT = [
    (["--profile", "nowhere"], "profile nowhere: not there; allowed: "),
    (["--profile", "local"], "local/report.yaml: No such file or directory"),
    ([], "local/report.yaml: No such file or directory; run it in reperf's folder, or name one"),
    (["--configfile", "images.yaml"], "images.yaml: images.pytorch: got '/nowhere/x.sif'"),
    (["--configfile", "big.yaml"], "big.yaml: suite one: topology 1n9999g is too large"),
    (["--profile", "local", "--configfile", "no.yaml"], "no.yaml: No such file or directory"),
    (["--profile", "local", "--configfile", "text"], "text: is not YAML: "),
    (
        ["--profile", "local", "--configfile", "big.yaml"],
        "big.yaml: suite one: topology 1n9999g is too large",
    ),
    (
        ["--profile", "slurm", "--configfile", "big.yaml"],
        "big.yaml: cluster: missing; --profile slurm needs it, see docs/cluster.md",
    ),
    (
        ["--profile", "local", "--configfile", "far.yaml"],
        "far.yaml: cluster: the report is for one",
    ),
    (
        ["--profile", "slurm", "--configfile", "far.yaml"],
        "no Slurm on this machine: sbatch not found",
    ),
]


@pytest.mark.parametrize(("arguments", "line"), BAD_INPUT)
def test_bad_input_is_one_line(tmp_path, monkeypatch, capsys, arguments, line):
    suite = (
        "suites: [{name: one, workload: resnet50, precision: fp32, batch_size: 1, "
        "input: synthetic, systems: [pytorch]}]\n"
    )
    (tmp_path / "text").write_text("{a: [")
    (tmp_path / "big.yaml").write_text(f"topologies: [1n9999g]\ndevice: cpu\n{suite}")
    image = "images: {pytorch: /nowhere/x.sif}\n"
    (tmp_path / "images.yaml").write_text(f"{image}device: cpu\n{suite}")
    (tmp_path / "far.yaml").write_text(f"cluster: {{nodes: 4, devices_per_node: 8}}\n{suite}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["doctor", *arguments]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"reperf: {line}")
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "results").exists()
