"""A system that needs nothing but Python: it prints a whole step log at once."""

from pathlib import Path

import yaml

SYSTEM = {
    "title": "Stand-in",
    "about": "prints a whole step log at once",
    "builds": {"cpu": ["lock"]},
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


def add_stand_in(benchmark: Path, name: str, package: str, python: str) -> None:
    """Add a stand-in to a benchmark.

    Args:
        benchmark: its folder.
        name: of the system.
        package: what it takes for its framework, and all that its environment has.
        python: version of its interpreter.
    """
    folder = benchmark / "workflow/systems" / name
    folder.mkdir()
    locks = {"cpu": {"python": python, "packages": [package]}}
    described = SYSTEM | {"framework": package, "locks": locks}
    (folder / "system.yaml").write_text(yaml.safe_dump(described))
    (folder / "resnet50.py").write_text(f"import {package}\n{PROGRAM}")
