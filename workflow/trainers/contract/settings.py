"""What a trainer sets within its own process: no launch shows it, so its log says it."""

import os

RECORDED = {}
"""Name -> value: a variable's, as it stands, or that of a framework's switch; and what else was
changed -> how."""


def variables(values, anyway=False):
    """Set environment variables; those that are set already stay, unless `anyway`."""
    for name, value in values.items():
        if anyway:
            os.environ[name] = value
        RECORDED[name] = os.environ.setdefault(name, value)


def switched(name, value):
    """Remember a framework's switch, by its name in the framework, or what else was changed, and
    how, in words; returns the value.
    """
    RECORDED[name] = value
    return value
