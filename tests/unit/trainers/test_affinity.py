"""Ranks keep to the CPUs next to their GPUs, of which the kernel's files are made up here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from reperf.systems import TRAINERS
from trainers.contract.affinity import cpus_near, read, written

from tests.helpers.refusal import cannot_run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with a GPU on its second node, and one of which it does not know the node."""
    for address, node, cpus in (
        ("0000:3b:00.0", 1, "32-63,96-127\n"),
        ("0001:af:00.0", -1, "0-127\n"),
    ):
        folder = tmp_path / "sys/bus/pci/devices" / address
        folder.mkdir(parents=True)
        (folder / "numa_node").write_text(f"{node}\n")
        (folder / "local_cpulist").write_text(cpus)
    return tmp_path


def test_a_gpus_cpus_are_those_of_its_node_if_the_kernel_knows_them(root: Path):
    for address in ("0000:3B:00.0", "00000000:3B:00.0", "0000:3b:00.0"):
        assert cpus_near(address, root) == {*range(32, 64), *range(96, 128)}
    for address in ("0001:AF:00.0", "0000:00:00.0"):
        assert cpus_near(address, root) == set()


def test_files_that_say_nothing_name_no_cpu(root: Path):
    for damaged in ("", "here\n", "1-two\n"):
        (root / "sys/bus/pci/devices/0000:3b:00.0/local_cpulist").write_text(damaged)
        assert cpus_near("0000:3b:00.0", root) == set()


def test_a_list_of_cpus_is_read_as_it_was_written_and_neighbours_are_a_range():
    for cpus, text in ({0, 1, 2, 5, 255, 256}, "0-2,5,255-256"), ({3}, "3"), (set(), ""):
        assert written(cpus) == text
        assert read(text + "\n") == cpus


def test_all_threads_move_and_none_gets_a_cpu_that_it_did_not_have(tmp_path: Path):
    """The driver's answer is made up: the machines of the tests have no GPU."""
    two = sorted(os.sched_getaffinity(0))[:2]
    if len(two) < 2:
        cannot_run("a rank's move to one of its CPUs: there is only one")
    folder = tmp_path / "sys/bus/pci/devices/0000:3b:00.0"
    folder.mkdir(parents=True)
    (folder / "numa_node").write_text("1")
    (folder / "local_cpulist").write_text(f"{two[1]},1000")
    code = f"""
import os, threading, time
from trainers.contract import affinity
os.sched_setaffinity(0, {two})
threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
affinity.pci_address = {{0: "0000:3B:00.0", 1: None}}.get
def say(told):
    print(told, *(os.sched_getaffinity(int(one)) for one in os.listdir("/proc/self/task")), sep=";")
say(affinity.keep_to({{1000}}))  # all far away
say(affinity.keep_near_gpu(1, {str(tmp_path)!r}))
say(affinity.keep_near_gpu(0, {str(tmp_path)!r}))
"""
    environment = {"PYTHONPATH": str(TRAINERS.parent)}
    said = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    both = f"{set(two)};{set(two)}"
    assert said.splitlines() == [
        f"{set(two)};{both}",
        f"{written(two)};{both}",
        f"{two[1]};{{{two[1]}}};{{{two[1]}}}",
    ]
