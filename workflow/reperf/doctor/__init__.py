"""`reperf doctor`: a short look at every node for what ruins benchmarks.

`probe` and `trials` run on the nodes, as programs; everything else runs where the doctor is called.
"""

__all__ = ["examine", "probe", "screen", "targets", "trials"]
