"""How tests have text converted, where nothing else is what they are about."""

SHAPE = {"sequence_length": 64, "max_predictions": 10, "vocabulary": 2000}
"""Of a workload that trains on it."""
KEYS = {"vocabulary_size": 2000, "sequence_length": 64, "max_predictions": 10, "parts": 4}
"""Of the data set."""
