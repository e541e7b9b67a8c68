"""Start JAX's processes on one node: python -m trainers.launchers.jax ... program ...

JAX has no launcher: each process is told who it is, and where the first one connects them. Each
device is a process of its own, so that a rank that dies is known.
"""

from trainers.launchers.ranks import parse_launch_flags, run_ranks


def main():
    flags = parse_launch_flags(__doc__.splitlines()[0])
    local = flags.devices_per_node
    first = flags.node_rank * local
    shared = {"WORLD_SIZE": str(flags.nodes * local), "HEAD": f"{flags.head}:{flags.port}"}
    ranks = [
        {**shared, "RANK": str(first + number), "LOCAL_RANK": str(number)}
        for number in range(local)
    ]
    run_ranks(flags.command, ranks, first)


if __name__ == "__main__":
    main()
