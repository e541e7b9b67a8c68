"""`reperf doctor`: a short look at every node for what ruins benchmarks."""
