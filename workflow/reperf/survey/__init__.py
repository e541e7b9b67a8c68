"""Which node of a cluster is slow, or computes otherwise: one short cell on every node."""
