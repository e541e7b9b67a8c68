"""A system that needs nothing but Python: it prints a whole step log at once."""

from pathlib import Path

import yaml

SYSTEM = {
    "title": "Stand-in",
    "framework": "none",
    "about": "prints a whole step log at once",
    "launch": ["python"],
    "workloads": {"resnet50": {"precisions": {"cpu": ["fp32"]}}},
}
PROGRAM = """\
import types
from trainers.contract.flags import parse_flags
from trainers.contract.precision import Precision
from trainers.contract.steplog import StepLog
sizes = {"weight": (25557032,)}
recipe = types.SimpleNamespace(check=lambda shape: None, weight_shapes=lambda shape: sizes)
flags = parse_flags(recipe)
log = StepLog(recipe, flags, 0, 1)
with log.to_the_end():
    log.configured(25557032, "none", {}, ["cpu"], Precision("float32"))
    for iteration in range(1, flags.iterations + 1):
        log.step(iteration, 1.0)
    log.finished(["same"], [0])
"""


def add_stand_in(benchmark: Path, name: str, imports: str = "", **changes: object) -> None:
    """Add a stand-in to a benchmark.

    Args:
        benchmark: its folder.
        name: of the system.
        imports: a module that its environment must have.
        changes: keys of system.yaml.
    """
    folder = benchmark / "workflow/systems" / name
    folder.mkdir()
    (folder / "system.yaml").write_text(yaml.safe_dump(SYSTEM | changes))
    program = f"import {imports}\n{PROGRAM}" if imports else PROGRAM
    (folder / "resnet50.py").write_text(program)
