"""One training run: its command, its launch here or on a cluster, its tries, and how it ended."""
