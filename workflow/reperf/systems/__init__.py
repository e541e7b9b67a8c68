"""The systems under test, one folder each, and the workloads that they train.

What is built for a system is in `reperf.systems.environments`.
"""

from reperf.systems.system import (
    ENVIRONMENTS,
    ROOT,
    SYSTEMS,
    WORKLOADS,
    Device,
    Input,
    Precision,
    System,
    Variant,
    load_systems,
)

__all__ = [
    "ENVIRONMENTS",
    "ROOT",
    "SYSTEMS",
    "WORKLOADS",
    "Device",
    "Input",
    "Precision",
    "System",
    "Variant",
    "load_systems",
]
