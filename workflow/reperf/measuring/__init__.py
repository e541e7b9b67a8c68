"""From logs to numbers: which logs, what they say, the measuring rule, medians and intervals."""

SUMMED = "together"
"""The method of a measurement that sums what each trainer measured of itself, see `together`."""
