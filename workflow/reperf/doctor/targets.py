"""Where a profile runs a report: on this machine, or on the nodes of a Slurm partition."""

import re
import socket
from collections.abc import Sequence
from math import ceil
from pathlib import Path

from reperf.config import Cluster, Report
from reperf.config.site import gpus_option
from reperf.configfiles import read_profile
from reperf.errors import faults_of
from reperf.machine import check_containers, check_fits, check_memory
from reperf.plans.checking import check_profile
from reperf.training.hosts import check_hosts
from reperf.training.remote import command_on, name_of
from reperf.training.slurm import ask, check_cluster, excluded_by

WAIT_SECONDS = 60
"""How long a node may be busy with other jobs before the doctor gives up on it."""
_JOB_MINUTES = 5
_USABLE = re.compile(r"(idle|mixed|allocated|completing|planned)[~#%^@-]?")


class Nodes:
    """The nodes, and the commands that, put before a program's own, run it there.

    This machine is the only node, and needs no command.
    """

    def why_not(self) -> dict[str, str]:
        """Each node's name -> why it gets no jobs; "" if it gets some."""
        return {socket.gethostname(): ""}

    def on(self, node: str) -> list[str]:
        """The command that runs a program on one node."""
        return []

    def on_all(self, nodes: tuple[str, ...], seconds: float) -> list[str]:
        """The command for a program that may start others on all nodes, within so many seconds."""
        return []


class Partition(Nodes):
    """The nodes of a Slurm partition; each answers in a job of its own."""

    def __init__(self, report: Report, cluster: Cluster) -> None:
        devices = report.largest_shape[1]
        with_gpus = report.on("cuda")
        gpus = [gpus_option(cluster.gres, with_gpus.largest_shape[1])] if with_gpus.suites else []
        self._partition, self._excluded = cluster.partition, excluded_by(cluster.options)
        self._options = [
            f"--immediate={WAIT_SECONDS}",
            "--job-name=reperf-doctor",
            "--ntasks-per-node=1",
            f"--cpus-per-task={devices * report.cpus_per_device}",
            *gpus,
            *([f"--partition={cluster.partition}"] if cluster.partition else []),
            *([f"--account={cluster.account}"] if cluster.account else []),
            *([f"--mem={cluster.memory_mb}"] if cluster.memory_mb else []),
            *cluster.options,
        ]

    def why_not(self) -> dict[str, str]:
        # The reason comes last: it is free text, often that of NHC, and may hold bars.
        lines = ask("sinfo", "--Node", "--format=%N|%P|%T|%E")
        return {
            node: "" if _USABLE.fullmatch(state) else _out_of_service(state, "|".join(reason))
            for node, partition, state, *reason in lines
            if node not in self._excluded
            and (partition.rstrip("*") == self._partition if self._partition else "*" in partition)
        }

    def on(self, node: str) -> list[str]:
        # Not started in the work folder, which may be just what the node lacks.
        where = ["--nodes=1", f"--nodelist={node}", "--chdir=/"]
        limit = f"--time={_JOB_MINUTES}"
        return ["srun", "--quit-on-interrupt", limit, *self._options, *where]

    def on_all(self, nodes: tuple[str, ...], seconds: float) -> list[str]:
        limit = f"--time={ceil(seconds / 60)}"
        chosen = [f"--nodes={len(nodes)}", f"--nodelist={','.join(nodes)}"]
        return ["salloc", "--quiet", limit, *self._options, *chosen]


class Hosts(Nodes):
    """Hosts that ssh, or another command, reaches."""

    def __init__(self, report: Report, cluster: Cluster) -> None:
        self._cluster, self._hosts = cluster, {name_of(host): host for host in cluster.hosts}

    def why_not(self) -> dict[str, str]:
        return dict.fromkeys(self._cluster.hosts, "")

    def on(self, node: str) -> list[str]:
        return command_on(self._cluster.remote, [self._hosts[name_of(node)]], [])

    def on_all(self, nodes: tuple[str, ...], seconds: float) -> list[str]:
        return self.on(nodes[0])


def _out_of_service(state: str, reason: str) -> str:
    why = "" if reason.strip() in ("", "none") else f": {reason.strip()}"
    return f"Slurm says that it is {state}{why}"


def prepare(profile: str | None, configfiles: Sequence[Path]) -> tuple[Nodes, Report, str]:
    """Find what a profile runs, and where; see `reperf.configfiles.read_profile`.

    Returns:
        Where the report runs, the report, and its files as messages name them.

    Raises:
        ReperfError: no such profile, a bad configuration, no Slurm where the profile needs it.
    """
    report, files, settings = read_profile(profile, configfiles)
    check_profile(report, has_jobs="jobs" in settings, configfile=files)
    if report.slurm:
        check_cluster(report)
    elif report.cluster:
        check_hosts(report)
    with faults_of(files):
        for part in report.of_each_device():
            check_containers(part)
            if not report.cluster:
                check_fits(part)
                check_memory(part)
    return nodes_of(report), report, files


def nodes_of(report: Report) -> Nodes:
    """The nodes on which a report runs."""
    if report.cluster is None:
        return Nodes()
    return (Hosts if report.cluster.hosts else Partition)(report, report.cluster)
