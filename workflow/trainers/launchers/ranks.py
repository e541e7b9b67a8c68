"""Start the ranks of one node, and end them together: python -m trainers.launchers.ranks ...

For frameworks without a launcher, such as JAX, or whose own one ends ranks without naming the first
that failed, as OneFlow's. Like torchrun, this is started once on every node; it needs only the
standard library. Each device is a process.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys

_ABORTED = -signal.SIGABRT
_EXITING = 0x4  # in /proc/*/stat, see proc(5) and PF_EXITING in Linux


def launch_flags(about, meet=True):
    """A parser of the flags of a launcher, whose ranks may meet on the first node."""
    parser = argparse.ArgumentParser(description=about)
    # Without a default: one that a system's file forgets would have ranks wait for ever.
    if meet:
        parser.add_argument("--nodes", required=True, type=int)
        parser.add_argument("--head", required=True, help="address of the first node")
    parser.add_argument("--node-rank", required=True, type=int)
    parser.add_argument("--devices-per-node", required=True, type=int)
    parser.add_argument("--port", required=True, type=int, help="where ranks meet")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the program and its flags")
    return parser


def run_numbered_ranks(flags, shared):
    """Run this node's ranks as run_ranks does, each with RANK, LOCAL_RANK and shared variables."""
    local = flags.devices_per_node
    first = flags.node_rank * local
    ranks = [
        dict(shared, RANK=str(first + number), LOCAL_RANK=str(number)) for number in range(local)
    ]
    run_ranks(flags.command, ranks, first)


def run_ranks(command, environments, first):
    """Run a Python program once per rank of this node."""
    # When one fails, the others are killed, and this exits with a line that names the first one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    ranks = []
    try:
        for variables in environments:
            ranks.append(started(command, variables))
        running = {rank.pid: number for number, rank in enumerate(ranks)}
        while running:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid
            failed = [running[ended]] if ranks[running[ended]].wait() else []
            del running[ended]
            if failed:
                # The first to end is to blame: the others fail after it, within milliseconds. If
                # this process looked too late, it is the one that a signal ended, but not by an
                # abort: so frameworks end ranks that miss another. The kernel may be clearing up.
                late = [number for number in running.values() if is_ending(ranks[number].pid)]
                failed += [number for number in late if ranks[number].wait()]
                codes = {number: ranks[number].returncode for number in failed}
                number = max(failed, key=lambda one: codes[one] < 0 and codes[one] != _ABORTED)
                sys.exit(said_of_end(f"rank {first + number}", codes[number]))
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def is_ending(process):
    """Whether a child, by its number, has ended, or the kernel has begun to end it."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as stat:
            return bool(int(stat.read().rsplit(") ", 1)[1].split()[6]) & _EXITING)
    except OSError:  # no such place
        return False


def started(command, variables):
    """A process of a Python program, with environment variables besides this process's own."""
    return subprocess.Popen([sys.executable, *command], env=dict(os.environ, **variables))


def said_of_end(who, code):
    """How a process of this node has ended, by its return code: reperf.training.train reads it."""
    how = signal.Signals(-code).name if code < 0 else f"status {code}"
    return f"{who} on {socket.gethostname()} ended with {how}"


if __name__ == "__main__":
    asked = launch_flags("Start one node's ranks, which meet at the first node.").parse_args()
    size = asked.nodes * asked.devices_per_node
    meeting = {"WORLD_SIZE": str(size), "MASTER_ADDR": asked.head, "MASTER_PORT": str(asked.port)}
    run_numbered_ranks(asked, meeting)
