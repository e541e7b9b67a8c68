"""The systems under test, one folder each, and the workloads that they train.

`reperf.builds` builds what a system runs in.
"""

from reperf.root import ROOT
from reperf.systems.system import (
    ENVIRONMENTS,
    MODULE_STARTER,
    SYSTEMS,
    TRAINERS,
    BuildKind,
    Device,
    Input,
    Lock,
    LockName,
    Needs,
    Parallelism,
    Precision,
    System,
    Variant,
    load_systems,
)
from reperf.systems.workloads import Workload, load_workloads, read_shape, written_shape

__all__ = [
    "ENVIRONMENTS",
    "MODULE_STARTER",
    "ROOT",
    "SYSTEMS",
    "TRAINERS",
    "BuildKind",
    "Device",
    "Input",
    "Lock",
    "LockName",
    "Needs",
    "Parallelism",
    "Precision",
    "System",
    "Variant",
    "Workload",
    "load_systems",
    "load_workloads",
    "read_shape",
    "written_shape",
]
