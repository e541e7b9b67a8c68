"""Start JAX's processes on one node: python -m trainers.launchers.jax ... program ...

JAX has no launcher: each process is told who it is, and where the first one connects them. Each
device is a process of its own, so that a rank that dies is known.
"""

from trainers.launchers.ranks import launch_flags, run_numbered_ranks


def main():
    flags = launch_flags(__doc__.splitlines()[0]).parse_args()
    world_size = flags.nodes * flags.devices_per_node
    shared = {"WORLD_SIZE": str(world_size), "HEAD": f"{flags.head}:{flags.port}"}
    run_numbered_ranks(flags, shared)


if __name__ == "__main__":
    main()
