"""Where a run's launchers start: on this machine, on a Slurm job's nodes, or on several hosts."""

import os
import re
import shlex
import shutil
import socket
import sys
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trainers.contract.ports import claimed_ports

from reperf.builds.engines import VISIBLE_GPUS
from reperf.config import Run
from reperf.training.remote import command_on, name_of
from reperf.training.slurm import ask
from reperf.training.telemetry import used_gpus

_LABEL = re.compile(rb" *\d+: ")
_OF_A_NODE = {"{node_rank}": '"$SLURM_NODEID"', VISIBLE_GPUS: '"$CUDA_VISIBLE_DEVICES"'}
_FIRST_PORT, _PORTS = 20_000, 10_000
_PORTS_OF_A_JOB = 32
"""Those of two jobs with neighbouring numbers, which may share a node, lie side by side."""
_LONGEST_PART = 1024
"""Bytes that srun passes on at once of a line (SLURM_IO_MAX_MSG_LEN in its source)."""
_LONGEST_LINE = 1 << 20
"""Bytes."""


class Place:
    """One or more nodes, on each of which a system's own launcher is started once."""

    nodes: tuple[str, ...]
    """Their names, that of rank 0 first."""
    head: str
    """The address of the first node, as the others see it."""
    environment: Mapping[str, str]
    """The environment variables that exist there."""
    variables: Mapping[str, str]
    """The environment variables that the place adds."""
    temporary = ""
    """A folder for the temporary files of this run alone; "" where the place keeps none."""
    cluster: dict[str, Any] | None = None
    """The cluster's settings that decide how fast a run is; None on this machine."""
    job = ""
    """The number of the Slurm job; "" on this machine."""
    meters: Sequence[str] = ()
    """The command that prints what the GPUs of the other nodes report; empty without others."""
    is_local = False
    """Whether the run's processes here descend from this one."""
    seconds_to_end = 0.0
    """How long the started command needs, after SIGTERM, to end all that it has started."""

    def ports(self, count: int) -> tuple[int, ...]:
        """Ports for a run on each of the nodes; no other run uses them."""
        raise NotImplementedError

    def start(
        self, launcher: Sequence[str], srun_options: Sequence[str] = (), *, shared: bool = False
    ) -> list[str]:
        """The command that starts a launcher on every node.

        Args:
            launcher: its command; `{node_rank}` in it stands for the node's number, from 0, and
                `{visible_gpus}` for the GPUs that the node gives it.
            srun_options: further options, where srun starts it.
            shared: whether another launcher runs on the nodes, too.
        """
        raise NotImplementedError

    def on_others(self, command: Sequence[str]) -> list[str]:
        """How to run a command beside the run on each of the other nodes, on the job's own GPUs.

        Returns:
            Nothing where there are no others.
        """
        return []

    def lines(self, pieces: Iterable[bytes]) -> Iterable[bytes]:
        """The lines that launchers wrote, recovered from what the command wrote.

        Args:
            pieces: lines, or pieces of a line that is too long for memory.
        """
        return pieces


class ThisMachine(Place):
    """This machine as the only node."""

    is_local = True

    def __init__(self, run: Run) -> None:
        self.nodes = (socket.gethostname(),)
        self.head = "127.0.0.1"
        self.environment = dict(os.environ)
        # Launchers and frameworks leave files in it. Its path is short: sockets may lie there.
        self.temporary = tempfile.mkdtemp(prefix="reperf-")
        weakref.finalize(self, shutil.rmtree, self.temporary, ignore_errors=True)
        used = used_gpus(os.environ, run.devices_per_node) if run.device == "cuda" else ()
        as_nvml_counts = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if used else {}
        self.variables = {"CUDA_VISIBLE_DEVICES": ",".join(used), **as_nvml_counts}

    def ports(self, count: int) -> tuple[int, ...]:
        self._claims = claimed_ports(count)
        return tuple(self._claims)

    def start(
        self, launcher: Sequence[str], srun_options: Sequence[str] = (), *, shared: bool = False
    ) -> list[str]:
        gpus = self.variables["CUDA_VISIBLE_DEVICES"]
        return [
            gpus if part == VISIBLE_GPUS else part.replace("{node_rank}", "0") for part in launcher
        ]


class SlurmJob(Place):
    """The nodes of the job that this process runs in, on the first of them.

    Args:
        run: what will be trained.
        variables: environment variables that the configuration adds.
    """

    seconds_to_end = 20.0

    def __init__(self, run: Run, variables: Mapping[str, str]) -> None:
        self.job = job = os.environ["SLURM_JOB_ID"]
        ((names, cpus),) = ask("squeue", f"--job={job}", "--format=%N|%C")
        self.nodes = tuple(name for (name,) in ask("scontrol", "show", "hostnames", names))
        self.head = _address(self.nodes[0])
        self._first_port = _FIRST_PORT + int(job) * _PORTS_OF_A_JOB % _PORTS
        self._cpus = int(cpus) // len(self.nodes)
        self._gpus = [f"--gpus-per-node={run.devices_per_node}"] * (run.device == "cuda")
        self.meters = self.on_others(
            [sys.executable, "-m", "reperf.training.telemetry", str(run.devices_per_node)]
        )
        self.cluster = {"variables": dict(variables)}
        # Slurm itself tells each node's processes which GPUs they have.
        self.variables = {
            **({} if run.device == "cuda" else {"CUDA_VISIBLE_DEVICES": ""}),
            **variables,
        }
        # Slurm's settings for the job's script must not apply to the step that it starts.
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name == "SLURM_JOB_ID" or not name.startswith(("SLURM_", "SRUN_"))
        }

    def ports(self, count: int) -> tuple[int, ...]:
        return tuple(range(self._first_port, self._first_port + count))

    def start(
        self, launcher: Sequence[str], srun_options: Sequence[str] = (), *, shared: bool = False
    ) -> list[str]:
        count = len(self.nodes)
        options = [
            *(f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1"),
            f"--cpus-per-task={self._cpus}",
            *self._gpus,
            "--kill-on-bad-exit=1",
            "--label",
            # Else the second step would wait for what the first one holds.
            *(["--overlap"] if shared else []),
        ]
        return ["srun", *options, *srun_options, "sh", "-c", _on_its_node(launcher)]

    def on_others(self, command: Sequence[str]) -> list[str]:
        others = self.nodes[1:]
        if not others:
            return []
        count = len(others)
        options = [f"--nodelist={','.join(others)}", f"--nodes={count}", f"--ntasks={count}"]
        return ["srun", "--overlap", *options, "--cpus-per-task=1", *self._gpus, *command]

    def lines(self, pieces: Iterable[bytes]) -> Iterable[bytes]:
        return whole_lines(pieces)


class Hosts(Place):
    """This machine and other hosts, on which another command starts launchers, such as ssh.

    Args:
        run: what will be trained.
        variables: environment variables that the configuration adds.
        remote: what reaches a host.
        hosts: that of rank 0, which is this machine, first.
    """

    seconds_to_end = 20.0
    is_local = True

    def __init__(
        self, run: Run, variables: Mapping[str, str], remote: str, hosts: Sequence[str]
    ) -> None:
        self._remote, self._hosts = remote, hosts[: run.nodes]
        self._run = f"--run={os.getpid()}"
        self.nodes = tuple(map(name_of, self._hosts))
        self.head = self.nodes[0]
        self.environment = dict(os.environ)
        self.cluster = {"hosts": True, "variables": dict(variables)}
        gpus = ",".join(map(str, range(run.devices_per_node))) if run.device == "cuda" else ""
        as_nvml_counts = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if gpus else {}
        self.variables = {"CUDA_VISIBLE_DEVICES": gpus, **as_nvml_counts, **variables}
        if others := self._hosts[1:]:
            meter = (sys.executable, "-m", "reperf.training.telemetry")
            count = str(run.devices_per_node)
            self.meters = command_on(remote, others, [*meter, count, "{host}"], self._run)

    def ports(self, count: int) -> tuple[int, ...]:
        self._claims = claimed_ports(count)  # and no other run has the other hosts
        return tuple(self._claims)

    def start(
        self, launcher: Sequence[str], srun_options: Sequence[str] = (), *, shared: bool = False
    ) -> list[str]:
        gpus = self.variables["CUDA_VISIBLE_DEVICES"]
        words = [gpus if part == VISIBLE_GPUS else part for part in launcher]
        return command_on(self._remote, self._hosts, words, self._run, "--label")


def place_of(
    run: Run, cluster: Mapping[str, Any] | None, remote: str = "", hosts: Sequence[str] = ()
) -> Place:
    """Where a run starts.

    Args:
        cluster: the `variables` of the cluster that runs the report; None without one.
        remote: what reaches `hosts`.
        hosts: of the cluster; none: it is Slurm's.
    """
    if cluster is None:
        return ThisMachine(run)
    if hosts:
        return Hosts(run, cluster["variables"], remote, hosts)
    return SlurmJob(run, cluster["variables"])


def _address(node: str) -> str:
    """The address at which the other nodes reach a node."""
    (facts,) = ask("scontrol", "--oneliner", "show", "node", node)
    return re.findall(r"\bNodeAddr=(\S+)", facts[0])[0]


def _on_its_node(command: Sequence[str]) -> str:
    """A shell line that puts the node's number and GPUs, as Slurm gives them, into a command."""
    words = []
    for word in command:
        pieces = (piece for piece in re.split(f"({'|'.join(_OF_A_NODE)})", word) if piece)
        quoted = (_OF_A_NODE.get(piece) or shlex.quote(piece) for piece in pieces)
        words.append("".join(quoted) or "''")
    # Both streams in one, or srun would mix them within lines.
    return f"exec {' '.join(words)} 2>&1"


def whole_lines(output: Iterable[bytes]) -> Iterator[bytes]:
    """Join lines again: `srun --label` breaks long ones, and labels each part.

    A part that was broken off holds exactly as much as srun passes on at once; the last or only
    part of a line holds less. A line too long for memory stays broken, every megabyte.

    Args:
        output: lines as srun wrote them.
    """
    begun: dict[bytes, bytes] = {}
    for line in output:
        match = _LABEL.match(line)
        label = match[0] if match else b""
        text = begun.pop(label, b"") + line[len(label) :]
        if match and len(line) - len(label) - 1 == _LONGEST_PART and len(text) < _LONGEST_LINE:
            begun[label] = text[:-1]
        else:
            yield label + text
    for label, text in begun.items():
        yield label + text + b"\n"
