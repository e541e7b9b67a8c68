"""Reads the logs of any program: from their lines to the training runs that they record."""
