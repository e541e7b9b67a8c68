"""Start Horovod's ranks on one node: python -m trainers.launchers.horovod ... train.py ...

horovodrun reaches other nodes by ssh, which a job may not allow. This is started on every node; its
ranks meet as horovodrun's do, over gloo, at a server of Horovod's on the first node.
"""

import os
import threading

import psutil
from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
from horovod.runner.gloo_run import create_run_env_vars, create_slot_env_vars
from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

from trainers.contract.ports import address_towards
from trainers.launchers.ranks import launch_flags, run_ranks


def main():
    flags = launch_flags(__doc__.splitlines()[0]).parse_args()
    hosts = ",".join(f"{node}:{flags.devices_per_node}" for node in range(flags.nodes))
    slots = get_host_assignments(parse_hosts(hosts), flags.nodes * flags.devices_per_node)
    if flags.node_rank == 0:
        server = RendezvousHTTPServer(("", flags.port), RendezvousHandler, False)
        server.init(slots)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    meeting = meeting_at(flags.head, flags.port)
    here = [slot for slot in slots if slot.hostname == str(flags.node_rank)]
    ranks = [dict(meeting, **create_slot_env_vars(slot)) for slot in here]
    run_ranks(flags.command, ranks, here[0].rank)


def meeting_at(head, port):
    """The environment variables by which ranks find the server, and how they talk to each other."""
    variables = create_run_env_vars(head, [interface_towards(head, port)], str(port))
    # Horovod would have NCCL take this interface, too; what the user says of NCCL counts more.
    if "NCCL_SOCKET_IFNAME" in os.environ:
        variables.pop("NCCL_SOCKET_IFNAME", None)
    # A rank may take long to start, and the run's own time limit ends one that hangs.
    variables["HOROVOD_GLOO_TIMEOUT_SECONDS"] = str(24 * 3600)
    return variables


def interface_towards(address, port):
    own, every = address_towards(address, port), psutil.net_if_addrs().items()
    return next(name for name, found in every if any(one.address == own for one in found))


if __name__ == "__main__":
    main()
