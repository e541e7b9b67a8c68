"""A run on a Slurm cluster: one launcher on each node of the job that this process runs in."""

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reperf.builds.starting import VISIBLE_GPUS
from reperf.config import Run
from reperf.training.slurm import ask

_LABEL = re.compile(rb" *\d+: ")
_OF_A_NODE = {"{node_rank}": '"$SLURM_NODEID"', VISIBLE_GPUS: '"$CUDA_VISIBLE_DEVICES"'}
_FIRST_PORT, _PORTS = 20_000, 10_000
_PORTS_OF_A_JOB = 32
"""Those of two jobs with neighbouring numbers, which may share a node, lie side by side."""
_LONGEST_PART = 1024
"""Bytes that srun passes on at once of a line (SLURM_IO_MAX_MSG_LEN in its source)."""
_LONGEST_LINE = 1 << 20
"""Bytes."""


class SlurmJob:
    """The nodes of the job that this process runs in, on the first of them.

    Args:
        run: what will be trained.
        variables: environment variables that the configuration adds.
    """

    seconds_to_end = 20.0
    temporary = ""  # a folder made here would be missing on the other nodes

    def __init__(self, run: Run, variables: Mapping[str, str]) -> None:
        self.job = job = os.environ["SLURM_JOB_ID"]
        ((names, cpus),) = ask("squeue", f"--job={job}", "--format=%N|%C")
        self.nodes = tuple(name for (name,) in ask("scontrol", "show", "hostnames", names))
        self.head = _address(self.nodes[0])
        self._first_port = _FIRST_PORT + int(job) * _PORTS_OF_A_JOB % _PORTS
        self._cpus = int(cpus) // len(self.nodes)
        self._gpus = [f"--gpus-per-node={run.devices_per_node}"] * (run.device == "cuda")
        self.meters: Sequence[str] = self._on_others(
            [sys.executable, "-m", "reperf.training.telemetry", str(run.devices_per_node)]
        )
        self.cluster: dict[str, Any] | None = {"variables": dict(variables)}
        # Slurm itself tells each node's processes which GPUs they have.
        self.variables: Mapping[str, str] = {
            **({} if run.device == "cuda" else {"CUDA_VISIBLE_DEVICES": ""}),
            **variables,
        }
        # Slurm's settings for the job's script must not apply to the step that it starts.
        self.environment: Mapping[str, str] = {
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

    def _on_others(self, command: Sequence[str]) -> list[str]:
        """How to run a command beside the run on each of the other nodes, on the job's own GPUs."""
        others = self.nodes[1:]
        if not others:
            return []
        count = len(others)
        options = [f"--nodelist={','.join(others)}", f"--nodes={count}", f"--ntasks={count}"]
        return ["srun", "--overlap", *options, "--cpus-per-task=1", *self._gpus, *command]

    def lines(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        return whole_lines(pieces)


def _address(node: str) -> str:
    """The address at which the other nodes reach a node."""
    (facts,) = ask("scontrol", "--oneliner", "show", "node", node)
    return re.findall(r"\bNodeAddr=(\S+)", facts[0])[0]


def _on_its_node(command: Sequence[str]) -> str:
    """A shell line that puts the node's number and GPUs, as Slurm gives them, into a command."""
    words = []
    for word in command:
        pieces = (piece for piece in re.split(f"({'|'.join(_OF_A_NODE)})", word) if piece)
        words.append("".join(_OF_A_NODE.get(one) or shlex.quote(one) for one in pieces) or "''")
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
        found = _LABEL.match(line)
        label = found[0] if found else b""
        text = begun.pop(label, b"") + line[len(label) :]
        if found and len(line) - len(label) - 1 == _LONGEST_PART and len(text) < _LONGEST_LINE:
            begun[label] = text[:-1]
        else:
            yield label + text
    for label, text in begun.items():
        yield label + text + b"\n"
