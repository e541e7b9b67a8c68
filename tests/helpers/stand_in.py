"""A system that needs nothing but Python: it prints a whole step log at once."""

import sys
from pathlib import Path

import yaml

from tests.helpers.small_benchmark import Benchmark, new_benchmark

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
NAME = "stand-in"
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
    log.configured(25557032, framework.__name__, {}, ["cpu"], Precision("float32"))
    for iteration in range(1, flags.iterations + 1):
        log.step(iteration, 1.0, None)
    log.finished([["all", "same"]], [0])
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
    (folder / "resnet50.py").write_text(f"import {package} as framework\n{PROGRAM}")


def new_stand_in_benchmark(folder: Path) -> Benchmark:
    """A benchmark of which nothing is built; its stand-in, NAME, needs one small package."""
    benchmark = new_benchmark(folder, folder)
    (folder / ".envs").unlink()  # it shares no environment with others
    add_stand_in(folder, NAME, "six", python=HERE)
    (folder / f"envs/{NAME}.txt").write_text("six==1.17.0\n")
    return benchmark
