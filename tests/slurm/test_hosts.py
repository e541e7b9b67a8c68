"""`snakemake --profile hosts`: machines without a batch system, reached by a real ssh."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.helpers.shapes import TINY_BERT
from tests.helpers.small_benchmark import SMALL
from tests.slurm.cluster import SlurmCluster, wait_for
from tests.slurm.slurm_benchmark import SUITE, SlurmBenchmark

TOPOLOGIES = ["2n2g", "3n1g"]
DISTURBED = {"milliseconds": 4000}
"""The toy's shape for a run that is disturbed while it trains."""
SSHD = """\
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
StrictModes no
PidFile /run/sshd/pid
UsePAM no
"""
SSH = """\
IdentityFile {folder}/key
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
"""


@pytest.fixture(scope="session")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The keys and settings of ssh and its daemon."""
    folder = tmp_path_factory.mktemp("ssh")
    for key in ("key", "host_key"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(words, check=True)
    (folder / "sshd_config").write_text(SSHD.format(folder=folder))
    (folder / "ssh_config").write_text(SSH.format(folder=folder))
    return folder


@pytest.fixture
def remote(cluster: SlurmCluster, ssh: Path) -> str:
    """The command that reaches a node: ssh, whose daemon runs on each of them."""
    start = f"""mkdir -p /run/sshd
kill -0 "$(cat /run/sshd/pid)" 2>/dev/null || exec /usr/sbin/sshd -f {ssh}/sshd_config"""
    for machine in cluster.machines[1:]:
        (first,) = psutil.Process(machine.pid).children()
        entered = ["nsenter", f"--target={first.pid}", "--net", "--uts", "--mount", "--pid"]
        subprocess.run([*entered, "sh", "-c", start], check=True)
    return f"ssh -F {ssh}/ssh_config"


@dataclass
class HostsBenchmark(SlurmBenchmark):
    """A copy of the workflow whose report is for hosts."""

    remote: str = ""

    def configure_hosts(self, **changes: object) -> None:
        hosts = ["ctl", *self.cluster.nodes]
        there = {"hosts": hosts, "devices_per_node": 2, "remote": self.remote}
        usual = {"suites": [SUITE], "topologies": TOPOLOGIES, "repeats": 1}
        self.configure(**usual | {"cluster": there | changes.pop("cluster", {})} | changes)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", "--profile", "hosts", *arguments]


@pytest.fixture
def benchmark(benchmark, remote, begun) -> Iterator[HostsBenchmark]:
    benchmark = HostsBenchmark(benchmark.folder, benchmark.cluster, remote=remote)
    benchmark.take_over(begun)
    benchmark.configure_hosts()
    yield benchmark
    benchmark.wait_until_nobody_trains()


def losses(log: Path) -> list[str]:
    return re.findall(r'"loss": ([\d.]+)', log.read_text())


def test_a_report_is_made_on_hosts_with_the_losses_of_slurms(benchmark):
    benchmark.made("results/summary.csv")
    assert set(benchmark.cells()["status"]) == {"ok"}
    for topology in TOPOLOGIES:
        nodes, record = int(topology[0]), benchmark.record(topology)
        assert record["nodes"] == ["ctl", *benchmark.cluster.nodes][:nodes]
        assert record["host"]["hostname"] == "ctl"
        log = benchmark.run_folder(topology) / "train.log"
        places = dict(re.findall(r"rank (\d+): started on (\S+), process", log.read_text()))
        assert set(places.values()) == set(record["nodes"])
    on_hosts = losses(benchmark.run_folder("2n2g") / "train.log")
    assert len(on_hosts) == 4
    benchmark.configure(suites=[SUITE], topologies=["2n2g"], repeats=1)
    slurm = SlurmBenchmark(benchmark.folder, benchmark.cluster)
    slurm.made("results/runs/small/stand-in/2n2g/1/run.json")
    assert slurm.record("2n2g")["slurm_job"]
    assert losses(benchmark.run_folder("2n2g") / "train.log") == on_hosts


@pytest.mark.weekly
@pytest.mark.timeout(2400)  # environments are built, on however busy a machine
@pytest.mark.parametrize("system", ["pytorch", "jax", "mxnet"])
def test_frameworks_train_on_two_hosts_with_the_losses_of_slurms(
    benchmark, built_environments, system
):
    """PyTorch's ranks meet by torchrun, JAX's by its own service, and MXNet's by Horovod."""
    built_environments(system)
    suite = SMALL["suites"][0] | {
        **{"workload": "bert-base", "shape": TINY_BERT, "batch_size": 4, "input": "synthetic"},
        "systems": [system],
    }
    asked = {"suites": [suite], "topologies": ["2n1g"], "repeats": 1, "time_limit": 600}
    found = []
    for kind in ("hosts", "slurm"):
        if kind == "hosts":
            benchmark.configure_hosts(**asked)
            caller = benchmark
        else:
            benchmark.configure(**asked)
            caller = SlurmBenchmark(benchmark.folder, benchmark.cluster)
        folder = benchmark.folder / f"results/runs/small/{system}/2n1g/1"
        caller.made(str(folder.relative_to(benchmark.folder) / "run.json"))
        log = (folder / "train.log").read_text()
        assert len(set(re.findall(r"rank \d+: started on (\S+), process", log))) == 2
        digests = re.findall(r'"weight_digests", "value": (\[.*?\])', log)
        found.append((losses(folder / "train.log"), digests))
    assert len(found[0][0]) == 4
    assert found[0][1]
    assert found[0] == found[1]


def of_host(benchmark: HostsBenchmark, word: str) -> list[psutil.Process]:
    """The processes of `reperf.training.remote` on the machines, as `keep` or `start`, by age."""
    found = [
        process
        for process in benchmark.cluster.processes("cmdline", "create_time", "name")
        if word in " ".join(process.info["cmdline"] or ())
        and "reperf.training.remote" in process.info["cmdline"]
        and process.info["name"] != "ssh"
    ]
    return sorted(found, key=lambda process: process.info["create_time"])


IN_CI = ["an ssh"]
WEEKLY = [
    *("the caller", "a keeper"),
    *("the caller by SIGTERM", "the work", "the caller, the work and the start", "the start"),
    *("a guard", "a rank", "the network of node1"),
]


@pytest.mark.parametrize(
    "ended", [*IN_CI, *(pytest.param(ended, marks=pytest.mark.weekly) for ended in WEEKLY)]
)
def test_whatever_is_ended_nothing_is_left_on_any_host(benchmark, ended):
    benchmark.configure_hosts(suites=[SUITE | {"shape": DISTURBED}], topologies=["2n2g"])
    benchmark.made("--until", "remember")
    plan = benchmark.run_folder("2n2g") / "plan.json"
    words = [sys.executable, "-m", "reperf.training", str(plan.relative_to(benchmark.folder))]
    with benchmark.started(*words) as caller:
        rank = benchmark.rank("2n2g", 3)
        chain = [psutil.Process(caller.pid), *psutil.Process(caller.pid).children()]
        starts, keepers = of_host(benchmark, "start"), of_host(benchmark, "keep")
        far = [keeper for keeper in keepers if keeper.name() and "node1" in host_of(keeper)]
        sshs = [p for p in benchmark.cluster.processes("name") if p.info["name"] == "ssh"]
        assert (len(chain), len(far)) == (2, 2)
        lost = {
            "the caller": chain[:1],
            "the work": chain[1:],
            "the caller, the work and the start": [*chain, *starts],
            "the start": starts,
            "an ssh": sshs[:1],
            "a guard": far[:1],
            "a keeper": far[1:],
            "a rank": [rank],
        }
        link = ["ip", "link", "set", "node1"]
        if ended == "the network of node1":
            benchmark.cluster.run([*link, "down"])
        for process in lost.get(ended, []):
            process.send_signal(signal.SIGKILL)
        if ended.endswith("SIGTERM"):
            caller.terminate()
        try:
            benchmark.wait_until_nobody_trains()
            wait_for(lambda: not of_host(benchmark, "reperf"), "the programs on hosts to end", 60)
        finally:
            if ended == "the network of node1":
                benchmark.cluster.run([*link, "up"])


def host_of(process: psutil.Process) -> str:
    """The host name where a process runs: its namespace's."""
    return subprocess.run(
        ["nsenter", f"--target={process.pid}", "--uts", "hostname"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_hosts_that_cannot_train_are_one_line(benchmark):
    for hosts, devices, line in (
        (["node1", "ctl"], 1, "cluster.hosts: node1 is not this machine, ctl; allowed: "),
        (["ctl", "nowhere"], 1, "cluster.hosts: nowhere: ssh: Could not resolve hostname"),
        (["ctl", "node1", "10.99.0.1"], 1, "10.99.0.1: the same machine as node1; allowed"),
        (["ctl", "node1"], 99, "devices of its CPUs; runs want 99"),
    ):
        there = {"hosts": hosts, "devices_per_node": devices}
        benchmark.configure_hosts(cluster=there, topologies=[f"2n{devices}g"])
        said = benchmark.refused().splitlines()
        (refusal,) = [one for one in said if "cluster.hosts" in one]
        assert line in refusal


def test_a_host_trains_one_run_at_a_time(benchmark):
    command = [sys.executable, "-m", "reperf.training.remote", "start"]
    first = [*command, benchmark.remote, "node1", "sh", "-c", "echo up; sleep 60"]
    with benchmark.started(*first) as process:
        assert process.stdout.readline() == "up\n"
        second = benchmark.call(*command, benchmark.remote, "node1", "true")
    assert second.returncode == 75
    assert re.search(
        r"node1: process \d+ on ctl uses it; allowed: one run at a time", second.stdout
    )


@pytest.mark.weekly
def test_a_survey_and_the_doctor_look_at_hosts(benchmark):
    suite = SUITE | {"shape": {"milliseconds": 20}}
    benchmark.configure_hosts(suites=[suite], topologies=["1n1g", "2n1g"], iterations=20)
    benchmark.made("environments")
    hosts = ["ctl", *benchmark.cluster.nodes]
    call = ("reperf", "survey", "--profile", "hosts", "--runs", "2", "--margin", "50%", "--links")
    answer = benchmark.call(*call)
    kept = json.loads((benchmark.folder / "results/survey/survey.json").read_text())
    assert {run["status"] for run in kept["runs"]} == {"ok"}, answer.stdout
    assert sorted(kept["verdicts"]["nodes"]) == sorted(hosts)
    assert {run["status"] for run in kept["pairs"]} == {"ok"}, answer.stdout
    assert len(kept["pairs"]) == 2 * 2 * 2  # of five hosts, one rests
    answer = benchmark.call("reperf", "doctor", "--profile", "hosts")
    found = json.loads((benchmark.folder / "results/doctor.json").read_text())
    assert [report["node"] for report in found["node_reports"]] == hosts
    assert all(report["probe"]["environments"] for report in found["node_reports"]), answer.stdout
    together = max(found["trials"], key=lambda trial: len(trial["nodes"]))
    assert (together["nodes"], together["trouble"]) == (hosts, "")
