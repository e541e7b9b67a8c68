"""Where a run's launchers start: on this machine, or on the nodes of a Slurm job."""

import os
import shutil
import socket
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from trainers.contract.ports import claimed_ports

from reperf.builds.starting import VISIBLE_GPUS
from reperf.config import Run
from reperf.training.slurm_job import SlurmJob
from reperf.training.telemetry import used_gpus


class Place(Protocol):
    """One or more nodes, on each of which a system's own launcher is started once."""

    nodes: tuple[str, ...]
    """Their names, that of rank 0 first."""
    head: str
    """The address of the first node, as the others see it."""
    environment: Mapping[str, str]
    """The environment variables that exist there."""
    temporary: str = ""
    """A folder for the temporary files of this run alone; "" where the place keeps none."""
    variables: Mapping[str, str]
    """The environment variables that the place adds."""
    cluster: dict[str, Any] | None = None
    """The cluster's settings that decide how fast a run is; None on this machine."""
    job: str = ""
    """The number of the Slurm job; "" on this machine."""
    meters: Sequence[str] = ()
    """The command that prints what the GPUs of the other nodes report; empty without others."""
    seconds_to_end: float = 0.0
    """How long the started command needs, after SIGTERM, to end all that it has started."""

    def ports(self, count: int) -> tuple[int, ...]:
        """Ports for a run on each of the nodes; no other run uses them."""

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

    def lines(self, pieces: Iterable[bytes]) -> Iterable[bytes]:
        """The lines that launchers wrote, recovered from what the command wrote.

        Args:
            pieces: lines, or pieces of a line that is too long for memory.
        """


class ThisMachine(Place):
    """This machine as the only node."""

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

    def lines(self, pieces: Iterable[bytes]) -> Iterable[bytes]:
        return pieces


def place_of(run: Run, cluster: Mapping[str, Any] | None) -> Place:
    """Where a run starts.

    Args:
        cluster: the `variables` of the Slurm cluster that runs the report; None without one.
    """
    if cluster is None:
        return ThisMachine(run)
    return SlurmJob(run, cluster["variables"])
