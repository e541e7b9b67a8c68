"""Ranks keep to the CPUs next to their GPUs, of which the kernel's files are made up here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
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


@pytest.mark.parametrize("address", ["0000:3B:00.0", "00000000:3B:00.0", "0000:3b:00.0"])
def test_a_gpus_cpus_are_those_of_its_node(address: str, root: Path):
    assert cpus_near(address, root) == {*range(32, 64), *range(96, 128)}


@pytest.mark.parametrize("address", ["0001:AF:00.0", "0000:00:00.0"])
def test_where_the_kernel_does_not_know_there_are_none(address: str, root: Path):
    assert cpus_near(address, root) == set()


@pytest.mark.parametrize("damaged", ["", "here\n", "1-two\n"])
def test_files_that_say_nothing_name_no_cpu(damaged: str, root: Path):
    (root / "sys/bus/pci/devices/0000:3b:00.0/local_cpulist").write_text(damaged)
    assert cpus_near("0000:3b:00.0", root) == set()


@given(st.sets(st.integers(0, 300)))
def test_a_list_of_cpus_is_read_as_it_was_written(cpus: set[int]):
    assert read(written(cpus) + "\n") == cpus


def test_neighbours_are_written_as_a_range():
    assert written({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8"
    assert written(set()) == ""


def answer(body: str) -> str:
    """What a process prints that has two CPUs, `first` and `second`, and a second thread."""
    two = sorted(os.sched_getaffinity(0))[:2]
    if len(two) < 2:
        cannot_run("a rank's move to one of its CPUs: there is only one")
    code = f"""
import os, threading, time
from trainers.contract import affinity
first, second = {two}
os.sched_setaffinity(0, {{first, second}})
threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
def all_threads():
    return [os.sched_getaffinity(int(one)) for one in os.listdir("/proc/self/task")]
{body}"""
    return subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(TRAINERS.parent)},
    ).stdout.strip()


def test_all_threads_move_and_none_gets_a_cpu_that_it_did_not_have():
    said = answer("affinity.keep_to({second, 1000}); print(all_threads() == [{second}] * 2)")
    assert said == "True"


def test_a_rank_whose_cpus_are_all_far_away_stays_where_it_is():
    said = answer("affinity.keep_to({1000}); print(all_threads() == [{first, second}] * 2)")
    assert said == "True"


def test_a_gpu_leads_to_its_cpus(tmp_path: Path):
    """The driver's answer is made up, too: the machines of the tests have none."""
    folder = tmp_path / "sys/bus/pci/devices/0000:3b:00.0"
    folder.mkdir(parents=True)
    said = answer(f"""
from pathlib import Path
Path({str(folder)!r}, "numa_node").write_text("1")
Path({str(folder)!r}, "local_cpulist").write_text(str(second))
affinity.pci_address = {{0: "0000:3B:00.0", 1: None}}.get
print(affinity.keep_near_gpu(1, {str(tmp_path)!r}) == affinity.written({{first, second}}))
print(affinity.keep_near_gpu(0, {str(tmp_path)!r}) == str(second), all_threads()[0] == {{second}})
""")
    assert said.split() == ["True"] * 3
