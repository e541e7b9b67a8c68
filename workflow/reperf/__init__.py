"""reperf: rerun deep-learning training benchmarks and trace every number to its log."""

__version__ = "1.0.0"
