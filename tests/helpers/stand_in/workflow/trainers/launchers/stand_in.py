"""Start one node's ranks of the stand-in: python -m trainers.launchers.stand_in ... program ..."""

from trainers.launchers.ranks import launch_flags, run_numbered_ranks


def main():
    parser = launch_flags(__doc__.splitlines()[0])
    parser.add_argument("--first", required=True, help="address at which rank 0 may listen")
    flags = parser.parse_args()
    world_size = str(flags.nodes * flags.devices_per_node)
    run_numbered_ranks(flags, {"WORLD_SIZE": world_size, "FIRST": flags.first.split(",")[0]})


if __name__ == "__main__":
    main()
