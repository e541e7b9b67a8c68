"""Start JAX's processes on one node: python -m trainers.launchers.jax ... program ...

JAX has no launcher: each process is told who it is, and where the first one connects them. Each
device is a process of its own, so that a rank that dies is known.
"""

import argparse

from trainers.launchers.ranks import run_ranks


def main():
    flags = parse_flags()
    local = flags.devices_per_node
    shared = {"WORLD_SIZE": str(flags.nodes * local), "HEAD": f"{flags.head}:{flags.port}"}
    ranks = [
        {**shared, "RANK": str(flags.node_rank * local + number), "LOCAL_RANK": str(number)}
        for number in range(local)
    ]
    run_ranks(flags.command, ranks)


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", required=True, type=int)
    parser.add_argument("--node-rank", required=True, type=int)
    parser.add_argument("--devices-per-node", required=True, type=int)
    parser.add_argument("--head", required=True, help="address of the first node")
    parser.add_argument("--port", required=True, type=int, help="there, of the first process")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the trainer and its flags")
    return parser.parse_args()


if __name__ == "__main__":
    main()
