"""A real Slurm cluster on one machine: munge, slurmctld and a slurmd for each node.

Every node is a set of Linux namespaces (network, mounts, host name, processes) behind a bridge,
and so is the controller. Nothing outside them is touched: Slurm's configuration lies over
/etc/slurm, and sockets, spool, state and GPU device files in a /run of each machine's own, all
of it only inside. The daemons die with the process that keeps the cluster, however it ends, and
the kernel then takes away every job, address and mount.

    python tests/slurm/cluster.py up
    python tests/slurm/cluster.py run snakemake --profile slurm
    python tests/slurm/cluster.py status
    python tests/slurm/cluster.py kill node2
    python tests/slurm/cluster.py revive node2
    python tests/slurm/cluster.py down
"""

import argparse
import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, Self

import psutil

HERE = Path(__file__).resolve().parent
PACKAGES = (HERE / "packages.txt").read_text(encoding="utf-8").split()
TOOLS = ("ip", "munged", "sbatch", "slurmctld", "slurmd")
REQUEST = "request"  # the file in the folder that tells the keeper of `up` what to do
KEEPER = "keeper"  # the file in the folder that stays locked as long as the cluster of `up`
FOLDER = Path(tempfile.gettempdir(), "reperf-slurm")

NAMESPACES = ("setpriv", "--pdeathsig=KILL", "unshare", "--net", "--mount", "--uts")


class ClusterError(Exception):
    """The cluster cannot run here, or did not do in time what it was asked for."""


def why_not() -> str | None:
    """Why this machine cannot hold a cluster, in one line; None if it can."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not found: apt-get install {' '.join(PACKAGES)}"
    trial = "mount -t tmpfs reperf /run; mknod /run/gpu c 1 3; ip link add trial type bridge"
    tried = subprocess.run(
        [*NAMESPACES, "unshare", "--fork", "--pid", "sh", "-ec", trial],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode:
        return f"no network namespaces with devices here: {tried.stderr.strip()}"
    return None


class SlurmCluster:
    """A controller and the nodes node1, node2, ... with 16 CPUs and some GPUs each.

    Entering it brings the cluster up and returns when every node is idle; leaving it takes it
    down. Only what the daemons said stays, under log/ in the folder. When the thread that
    entered it ends without leaving it, the kernel takes the cluster down.

    Args:
        folder: holds the configuration and the logs; no other cluster may run in it.
        nodes: number of nodes.
        gpus: GPUs a node. They are device files, which Slurm counts and hands out.
    """

    def __init__(self, folder: Path | str, nodes: int = 4, gpus: int = 8) -> None:
        self.folder = Path(folder).resolve()
        self.gpus = gpus
        self.nodes = [f"node{number}" for number in range(1, nodes + 1)]
        self._machines: dict[str, subprocess.Popen] = {}

    def __enter__(self) -> Self:
        self._write_configuration()
        try:
            self._start("ctl")
            for node in self.nodes:
                self.revive_node(node)
            self.wait_idle()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        network = _network(self.controller) if "ctl" in self._machines else None
        for machine in self._machines.values():
            _end(machine)
        self._machines.clear()
        if network != _network(os.getpid()):  # it had not left this machine's own network yet
            for process in _processes_in({network}):  # commands that somebody left running
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        shutil.rmtree(self.folder / "etc", ignore_errors=True)

    @property
    def machines(self) -> list[subprocess.Popen]:
        """The controller and the nodes, each the process that all of it descends from."""
        return list(self._machines.values())

    def processes(self, *attributes: str) -> list[psutil.Process]:
        """The processes on the machines, with these attributes as `info`."""
        return _processes_in({_network(machine.pid) for machine in self.machines}, *attributes)

    @property
    def controller(self) -> int:
        """A process inside the controller's namespaces, where commands run."""
        return self._machines["ctl"].pid

    def run(
        self, command: Sequence[str], cwd: Path | str = ".", **options: Any
    ) -> subprocess.CompletedProcess:
        """subprocess.run on the controller, where Slurm's commands work; output is captured."""
        options = {"capture_output": True, "text": True, "check": True} | options
        return subprocess.run(inside(self.controller, command, cwd), **options)  # noqa: PLW1510

    def popen(
        self, command: Sequence[str], cwd: Path | str = ".", **options: Any
    ) -> subprocess.Popen:
        """subprocess.Popen on the controller; the process can be sent signals as ever."""
        return subprocess.Popen(inside(self.controller, command, cwd), **options)

    def ask(self, *command: str) -> list[str]:
        """The lines that a command prints on the controller."""
        return self.run(command).stdout.splitlines()

    def states(self) -> dict[str, str]:
        """Each node's state as sinfo names it, such as idle, mixed or down*.

        Empty as long as the controller does not answer.
        """
        answer = self.run(["sinfo", "--noheader", "--Node", "--format=%N %T"], check=False)
        return dict(line.split() for line in answer.stdout.splitlines())

    def wait_idle(self, timeout: float = 30) -> None:
        """Wait until no job runs and every node can take one."""

        def idle() -> bool:
            return list(self.states().values()) == ["idle"] * len(self.nodes)

        wait_for(idle, "all nodes to be idle", timeout)

    def nodes_of(self, job: int | str) -> list[str]:
        """The names of the nodes that a job got."""
        nodes = self._job(job, "%N")
        return self.ask("scontrol", "show", "hostnames", nodes) if nodes else []

    def state_of(self, job: int | str) -> str:
        """A job's state as squeue names it, such as RUNNING or NODE_FAIL."""
        return self._job(job, "%T")

    def _job(self, job: int | str, what: str) -> str:
        (answer,) = self.ask(
            "squeue", "--noheader", "--states=all", f"--format={what}", f"--job={job}"
        )
        return answer

    def kill_node(self, node: str) -> None:
        """End a node at once: its slurmd, what its jobs run, and its network."""
        if node in self._machines:
            _end(self._machines.pop(node))
        # The kernel does this too, but when it likes, and the name may be needed before.
        self.run(["ip", "link", "delete", node], check=False)

    def revive_node(self, node: str) -> None:
        """Start a node anew, if it is not there; it joins the cluster a moment later."""
        if node not in self._machines:
            self._start(node, number=self.nodes.index(node) + 1, controller=self.controller)

    def tidy(self) -> None:
        """Cancel all jobs, revive killed nodes, and wait until every node is idle."""
        self.run(["scancel", "--user=root"], check=False)
        for node in self.nodes:
            self.revive_node(node)
        self.wait_idle()

    def _write_configuration(self) -> None:
        etc, log = self.folder / "etc", self.folder / "log"
        for folder in (etc, log):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        sizes = {"nodes": len(self.nodes), "gpus": self.gpus, "last_gpu": self.gpus - 1}
        for template in (HERE / "etc").iterdir():
            (etc / template.name).write_text(template.read_text().format(**sizes))
        addresses = ["127.0.0.1 localhost", "10.99.0.100 ctl"]
        addresses += [f"10.99.0.{number} {node}" for number, node in enumerate(self.nodes, 1)]
        (etc / "hosts").write_text("\n".join(addresses) + "\n")
        (etc / "munge.key").write_bytes(secrets.token_bytes(128))
        (etc / "munge.key").chmod(0o600)

    def _start(self, name: str, **variables: object) -> None:
        """Start a machine; machine.sh needs the variables."""
        variables |= {"name": name, "folder": self.folder, "gpus": self.gpus}
        messages = self.folder / "log" / f"{name}.log"
        with messages.open("a") as stderr:
            machine = subprocess.Popen(
                [*NAMESPACES, "sh", HERE / "machine.sh"],
                env=os.environ | {key: str(value) for key, value in variables.items()},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        self._machines[name] = machine
        if not machine.stdout.readline():
            raise ClusterError(f"{name} did not start: {messages.read_text().strip()}")


def inside(controller: int, command: Sequence[str], cwd: Path | str = ".") -> list[str]:
    """The command line that runs a command in the controller's namespaces.

    No process stands between: the command gets the id of the process that runs this line.
    """
    enter = ["nsenter", f"--target={controller}", "--net", "--mount", "--uts"]
    return [*enter, f"--wdns={Path(cwd).resolve()}", *map(str, command)]


def wait_for(condition: Callable[[], bool], what: str, timeout: float = 30) -> None:
    """Ask again and again until a condition holds.

    Raises:
        ClusterError: it does not hold after `timeout` seconds.
    """
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            raise ClusterError(f"waited {timeout:g} s in vain for {what}")
        time.sleep(0.1)


def _end(machine: subprocess.Popen) -> None:
    """Kill a machine: with the first process of its namespace, the kernel kills all others.

    As long as the machine starts, its child is a command of machine.sh, which may end before the
    signal comes, and the next one begin. So it is done again until the machine has ended.
    """
    while machine.poll() is None:
        with suppress(psutil.NoSuchProcess):
            first = psutil.Process(machine.pid).children()
            for process in first:
                process.kill()
            if not first:  # nothing hangs on it yet
                machine.kill()
        with suppress(subprocess.TimeoutExpired):
            machine.wait(0.1)
    machine.stdout.close()


def _network(process: int) -> Path | None:
    """What names the network namespace of a process; None if the process has ended."""
    with suppress(OSError):
        return Path(f"/proc/{process}/ns/net").readlink()
    return None


def _processes_in(networks: set[Path | None], *attributes: str) -> list[psutil.Process]:
    """The processes in network namespaces."""
    return [
        process
        for process in psutil.process_iter(attributes)
        if _network(process.pid) in networks - {None}
    ]


def up(folder: Path, nodes: int, gpus: int) -> None:
    """Bring a cluster up that stays; nothing happens where it is up already.

    A process of its own keeps it. Its standard output is a file that stays locked as long as
    that process lives, and names it and the controller.
    """
    if reason := why_not():
        raise ClusterError(reason)
    folder.mkdir(parents=True, exist_ok=True)
    messages = folder / "keeper.log"
    program = [sys.executable, __file__, f"--folder={folder}"]
    with (folder / KEEPER).open("a") as lock, suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock.truncate(0)
        with messages.open("w") as stderr:
            subprocess.Popen(
                [*program, "keep", f"--nodes={nodes}", f"--gpus={gpus}"],
                stdin=subprocess.DEVNULL,
                stdout=lock,
                stderr=stderr,
                start_new_session=True,
            )
    wait_for(lambda: _kept(folder) is None or len(_kept(folder)) == 2, "the cluster to come up")
    if _kept(folder) is None:
        raise ClusterError(messages.read_text().strip())


def keep(folder: Path, nodes: int, gpus: int) -> None:
    """Hold a cluster until SIGTERM: what `up` leaves running."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    print(os.getpid(), flush=True)
    with SlurmCluster(folder, nodes, gpus) as cluster:

        def do_what_is_asked(*_: object) -> None:
            verb, node = (folder / REQUEST).read_text().split()
            {"kill": cluster.kill_node, "revive": cluster.revive_node}[verb](node)
            (folder / REQUEST).unlink()

        signal.signal(signal.SIGUSR1, do_what_is_asked)
        print(cluster.controller, *cluster.nodes, flush=True)
        threading.Event().wait()  # signal.pause would miss a signal just before it


def ask_keeper(folder: Path, verb: str, node: str) -> None:
    """Have a node of the cluster that `up` left killed or revived, and wait until it is."""
    controller_of(folder)
    nodes = (folder / KEEPER).read_text().split()[2:]
    if node not in nodes:
        raise ClusterError(f"{node}: no node; allowed: {', '.join(nodes)}")
    (folder / REQUEST).write_text(f"{verb} {node}")
    os.kill(_kept(folder)[0], signal.SIGUSR1)
    wait_for(lambda: not (folder / REQUEST).exists(), f"{node} to be {verb}d")


def down(folder: Path) -> None:
    """Take down what `up` brought up and remove the folder; where nothing is up, only that."""
    if _kept(folder) is not None:
        wait_for(lambda: _kept(folder) != [], "the cluster to start")
        os.kill(_kept(folder)[0], signal.SIGTERM)
        wait_for(lambda: _kept(folder) is None, "the cluster to end")
    shutil.rmtree(folder, ignore_errors=True)


def controller_of(folder: Path) -> int:
    """A process inside the namespaces where commands run, of the cluster that `up` left."""
    kept = _kept(folder)
    if kept is None or len(kept) < 2:
        raise ClusterError(f"{folder}: no cluster is up; python {sys.argv[0]} up")
    return kept[1]


def _kept(folder: Path) -> list[int] | None:
    """The process that keeps a cluster and its controller, as far as they are; None if it's not."""
    try:
        with (folder / KEEPER).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except BlockingIOError:
        return [int(word) for word in (folder / KEEPER).read_text().split()[:2]]
    return None


def _enter(folder: Path, command: Sequence[str]) -> NoReturn:
    """Become a command that runs on the controller."""
    command = inside(controller_of(folder), command)
    os.execvp(command[0], command)


def main() -> int:
    """Run one command; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="default: %(default)s")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("up", "keep"):
        command = commands.add_parser(name)
        command.add_argument("--nodes", type=int, default=4)
        command.add_argument("--gpus", type=int, default=8, help="a node")
    commands.add_parser("run").add_argument("line", nargs=argparse.REMAINDER)
    commands.add_parser("status")
    for name in ("kill", "revive"):
        commands.add_parser(name).add_argument("node")
    commands.add_parser("down")
    options = parser.parse_args()
    try:
        match options.command:
            case "up":
                up(options.folder, options.nodes, options.gpus)
            case "keep":
                keep(options.folder, options.nodes, options.gpus)
            case "run":
                _enter(options.folder, options.line)
            case "kill" | "revive":
                ask_keeper(options.folder, options.command, options.node)
            case "status":
                _enter(options.folder, ["sh", "-c", "sinfo; squeue --states=all"])
            case "down":
                down(options.folder)
    except ClusterError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
