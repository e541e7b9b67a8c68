"""One training run: its command, its launch here or on a cluster, its tries, how it ended."""
