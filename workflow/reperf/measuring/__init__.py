"""From logs to numbers: which logs, what they say, the measuring rule, medians and intervals."""
