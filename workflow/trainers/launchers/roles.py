"""Start one node's trainers, or its parameter servers: python -m trainers.launchers.roles ...

Each process has variables: SERVERS, the addresses of all servers, by commas; WORLD_SIZE, the number
of trainers; TRAINERS, addresses that these may listen at, if the system asks for them; CORES, "own"
or, where too few are there for trainers and servers, "shared". A server has its number as SERVER, a
trainer RANK, LOCAL_RANK and, as MEETING, where rank 0 waits for the others.
"""

import os
import signal
import socket
import sys

from trainers.launchers.ranks import launch_flags, run_numbered_ranks, said_of_end, started


def main():
    parser = launch_flags(__doc__.splitlines()[0])
    parser.add_argument("--role", required=True, choices=("trainer", "server"))
    parser.add_argument("--servers", required=True, help="addresses of all, by commas, by nodes")
    parser.add_argument("--trainers", default="", help="likewise, if trainers listen, too")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of a trainer")
    parser.add_argument("--server-threads", type=int, default=1, help="CPU threads of a server")
    flags = parser.parse_args()
    trainers = flags.nodes * flags.devices_per_node
    everybody = {"SERVERS": flags.servers, "WORLD_SIZE": str(trainers), "TRAINERS": flags.trainers}
    each = len(flags.servers.split(",")) // flags.nodes
    needed = flags.devices_per_node * flags.threads + each * flags.server_threads
    everybody["CORES"] = "own" if needed <= len(os.sched_getaffinity(0)) else "shared"
    if flags.role == "trainer":
        run_numbered_ranks(flags, dict(everybody, MEETING=f"{flags.head}:{flags.port}"))
    else:
        _run_servers(flags, everybody, each)


def _run_servers(flags, everybody, each):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    usable, servers = sorted(os.sched_getaffinity(0)), {}
    try:
        for place in range(each):
            number = flags.node_rank * each + place
            if everybody["CORES"] == "own":
                # Those after the trainers' cores; a process inherits them.
                first = flags.devices_per_node * flags.threads + place * flags.server_threads
                os.sched_setaffinity(0, usable[first : first + flags.server_threads])
            process = started(flags.command, dict(everybody, SERVER=str(number)))
            servers[process.pid] = number, process
            _say(f"server {number}: started on {socket.gethostname()}, process {process.pid}")
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid
        number, process = servers[ended]
        _say(said_of_end(f"server {number}", process.wait()))
        sys.exit(1)
    finally:
        for _, process in servers.values():
            process.kill()
            process.wait()


def _say(text):
    os.write(1, (text + "\n").encode())  # in one piece, so that lines of processes never mix


if __name__ == "__main__":
    main()
