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
from pathlib import Path
from typing import Any

from trainers.contract.ports import claimed_ports

from reperf.builds.engines import VISIBLE_GPUS
from reperf.config import Run
from reperf.config.site import gpus_option
from reperf.data.set_read import read_of_set
from reperf.errors import ReperfError
from reperf.programs import ended
from reperf.text import count
from reperf.training.remote import command_on, name_of
from reperf.training.slurm import ask, nodes_of
from reperf.training.telemetry import used_gpus

_METER = (sys.executable, "-m", "reperf.training.telemetry")
_LABEL = re.compile(rb" *\d+: ")
_OF_A_NODE = {"{node_rank}": '"$SLURM_NODEID"', VISIBLE_GPUS: '"$CUDA_VISIBLE_DEVICES"'}
_STRICT = """\
exec 2>&1
set -e
trap 'status=$?; echo "BeforeError: $BASH_COMMAND ended with status $status"' ERR"""
"""What a shell begins with whose lines must all end well."""
_COPY = """\
[ -e "$2/manifest.json" ] && exit
mkdir -p "$(dirname "$2")" && cp -RL "$1" "$2.$$" || { rm -rf "$2.$$"; exit 1; }
# Another run may have copied it by now.
mv -T "$2.$$" "$2" 2>/dev/null || { rm -rf "$2.$$"; [ -e "$2/manifest.json" ]; }
"""  # a shell script that copies a data set to a node's disk, under a name for this copy first
_FIRST_PORT, _PORTS = 20_000, 10_000
_PORTS_OF_A_JOB = 32
"""Those of two jobs with neighbouring numbers, which may share a node, lie side by side."""
_LONGEST_PART = 1024
"""Bytes that srun passes on at once of a line (SLURM_IO_MAX_MSG_LEN in its source)."""
_LONGEST_LINE = 1 << 20  # bytes
Words = Sequence[str]  # of a command


class Place:
    """One or more nodes, on each of which a system's own launcher is started once."""

    nodes: tuple[str, ...]  # their names, that of rank 0 first
    head: str  # the address of the first node, as the others see it
    environment: Mapping[str, str]  # the environment variables that exist there
    variables: Mapping[str, str]  # the environment variables that the place adds
    temporary = ""
    """A folder for the temporary files of this run alone; "" where the place keeps none."""
    cluster: Mapping[str, Any] | None = None
    """The cluster's settings that decide how fast a run is; None on this machine."""
    job = ""  # the number of the Slurm job; "" on this machine
    meters: Sequence[str] = ()
    """The command that prints what the GPUs of the other nodes report; empty without others."""
    is_local = False  # whether the run's processes here descend from this one
    seconds_to_end = 0.0
    """How long the started command needs, after SIGTERM, to end all that it has started."""

    def ports(self, count: int) -> tuple[int, ...]:
        """Ports for a run on each of the nodes; no other run uses them."""
        self._claims = claimed_ports(count)  # on other hosts there are no other runs
        return tuple(self._claims)

    def staged(self, data: str) -> str:
        """The folder that ranks read, once it holds what a folder below the work folder does."""
        return data

    def start(self, launcher: Words, options: Words = (), *, shared: bool = False) -> list[str]:
        """The command that starts a launcher on every node.

        Args:
            launcher: its command; `{node_rank}` in it stands for the node's number, from 0, and
                `{visible_gpus}` for the GPUs that the node gives it.
            shared: whether another launcher runs on the nodes, too.
        """
        raise NotImplementedError

    def on_others(self, command: Sequence[str]) -> list[str]:
        """How to run a command beside the run on each other node, on the job's own GPUs, if any."""
        return []

    def lines(self, pieces: Iterable[bytes]) -> Iterable[bytes]:
        """The lines that launchers wrote, recovered from the pieces that the command wrote."""
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

    def start(self, launcher: Words, options: Words = (), *, shared: bool = False) -> list[str]:
        gpus = self.variables["CUDA_VISIBLE_DEVICES"]
        return [
            gpus if part == VISIBLE_GPUS else part.replace("{node_rank}", "0") for part in launcher
        ]


class SlurmJob(Place):
    """The nodes of the job that this process runs in, on the first of them.

    A run may take fewer nodes than the job has, the first of them; a smaller job is refused.
    """

    seconds_to_end = 20.0

    def __init__(self, run: Run, cluster: Mapping[str, Any]) -> None:
        self.job = job = os.environ["SLURM_JOB_ID"]
        nodes, self._cpus = nodes_of(job)
        self.nodes = nodes[: run.nodes]
        if len(self.nodes) < run.nodes:
            raise ReperfError(
                f"{run.folder}: {run.topology} needs {count(run.nodes, 'node')}; Slurm's job "
                f"{job} has {len(nodes)}"
            )
        (facts,) = ask("scontrol", "--oneliner", "show", "node", self.nodes[0])
        self.head = re.findall(r"\bNodeAddr=(\S+)", facts[0])[0]
        self._first_port = _FIRST_PORT + int(job) * _PORTS_OF_A_JOB % _PORTS
        on_gpus = run.device == "cuda"
        self._gpus = [gpus_option(cluster.get("gres"), run.devices_per_node)] * on_gpus
        self.meters = self.on_others([*_METER, str(run.devices_per_node)])
        self.cluster: Mapping[str, Any] = dict(cluster)
        self._before = tuple(cluster.get("before", ()))
        # Slurm itself tells each node's processes which GPUs they have.
        self.variables = {
            **({} if on_gpus else {"CUDA_VISIBLE_DEVICES": ""}),
            **cluster.get("variables", {}),
        }
        # Slurm's settings for the job's script must not apply to the step that it starts.
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name == "SLURM_JOB_ID" or not name.startswith(("SLURM_", "SRUN_"))
        }

    def staged(self, data: str) -> str:
        """A copy on each node's own disk, if the cluster has one; it stays there for later runs."""
        stage, digest = self.cluster.get("stage"), read_of_set(data, "records")[0]
        if stage is None or digest is None or Path(data).is_absolute():
            return data
        target = f"{stage}/reperf-{digest[:16]}/{data}"
        copied = ended(
            ["srun", *_of_nodes(self.nodes), "sh", "-c", _COPY, "sh", data, target],
            self.environment,
        )
        if copied.returncode:
            lines = copied.stderr.strip().splitlines() or ["no reason was printed"]
            raise ReperfError(f"{target}: cannot be copied there from {data}: {lines[0]}")
        return target

    def ports(self, count: int) -> tuple[int, ...]:
        return tuple(range(self._first_port, self._first_port + count))

    def start(self, launcher: Words, options: Words = (), *, shared: bool = False) -> list[str]:
        steps = [
            *_of_nodes(self.nodes),
            "--ntasks-per-node=1",
            f"--cpus-per-task={self._cpus}",
            *self._gpus,
            "--kill-on-bad-exit=1",
            "--label",
            # Else the second step would wait for what the first one holds.
            *(["--overlap"] if shared else []),
        ]
        return ["srun", *steps, *options, *_on_its_node(launcher, self._before)]

    def on_others(self, command: Sequence[str]) -> list[str]:
        others = self.nodes[1:]
        if not others:
            return []
        options = ["--overlap", *_of_nodes(others), "--cpus-per-task=1"]
        return ["srun", *options, *self._gpus, *command]

    def lines(self, pieces: Iterable[bytes]) -> Iterable[bytes]:
        return whole_lines(pieces)


class Hosts(Place):
    """This machine, first, and other hosts, on which ssh or another command starts launchers."""

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
        self.meters = self.on_others([*_METER, str(run.devices_per_node), "{host}"])

    def start(self, launcher: Words, options: Words = (), *, shared: bool = False) -> list[str]:
        gpus = self.variables["CUDA_VISIBLE_DEVICES"]
        words = [gpus if part == VISIBLE_GPUS else part for part in launcher]
        return command_on(self._remote, self._hosts, words, self._run, "--label")

    def on_others(self, command: Sequence[str]) -> list[str]:
        others = self._hosts[1:]
        return command_on(self._remote, others, command, self._run) if others else []


def place_of(
    run: Run, cluster: Mapping[str, Any] | None, remote: str = "", hosts: Sequence[str] = ()
) -> Place:
    """Where a run starts: on this machine, on Slurm's nodes, or on `hosts`, reached by `remote`."""
    if cluster is None:
        return ThisMachine(run)
    if hosts:
        return Hosts(run, cluster["variables"], remote, hosts)
    return SlurmJob(run, cluster)


def _of_nodes(nodes: Sequence[str]) -> list[str]:
    """The options of srun for one task on each of some nodes of a job."""
    return [f"--nodelist={','.join(nodes)}", f"--nodes={len(nodes)}", f"--ntasks={len(nodes)}"]


def _on_its_node(command: Sequence[str], before: Sequence[str] = ()) -> list[str]:
    """A shell that puts the node's number and GPUs, as Slurm gives them, into a command.

    Args:
        before: lines of bash that run first; each must succeed.
    """
    words = []
    for word in command:
        pieces = (piece for piece in re.split(f"({'|'.join(_OF_A_NODE)})", word) if piece)
        quoted = (_OF_A_NODE.get(piece) or shlex.quote(piece) for piece in pieces)
        words.append("".join(quoted) or "''")
    # Both streams in one, or srun would mix them within lines.
    line = f"exec {' '.join(words)} 2>&1"
    if not before:
        return ["sh", "-c", line]
    # The modules of a site are functions of bash.
    return ["bash", "-c", "\n".join([_STRICT, *before, "trap - ERR", line])]


def whole_lines(output: Iterable[bytes]) -> Iterator[bytes]:
    """Join lines again: `srun --label` breaks long ones, and labels each part.

    A part that was broken off holds exactly as much as srun passes on at once; the last or only
    part of a line holds less. A line too long for memory stays broken, every megabyte.
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
