"""What all frameworks share runs on the oldest Python of any build: 3.7, TensorFlow 1.15's.

That its ranks start, log and end, test_training.py shows.
"""

import os
import subprocess
import sys

import pytest
from reperf.systems import TRAINERS

from tests.systems.trainer import recipe_of, small

OLDEST = "ngc-tensorflow1"
pytestmark = pytest.mark.xdist_group(OLDEST)

NEEDS_MORE = {"trainers.launchers.paddle", "trainers.inputs.dali", "trainers.inputs.jpegs"}
"""Modules that need a package besides those of the environment."""
SHARED = {
    ".".join(path.relative_to(TRAINERS.parent).with_suffix("").parts)
    for folder in ("contract", "inputs", "launchers", "recipes")
    for path in (TRAINERS / folder).glob("*.py")
} - NEEDS_MORE

MADE = """
from argparse import Namespace
from importlib import import_module
from trainers.contract.weights import digest, initial_weights, synthetic_batch
from trainers.inputs.tfrecord import Records
for name, shape in RECIPES:
    recipe, flags = import_module(name), Namespace(shape=shape, batch_size=2, seed=1, proof=True)
    start = [array for _, array in initial_weights(recipe, flags)]
    print(name, digest(start), digest(synthetic_batch(recipe, flags, 1)))
for rank in (0, 1):
    records = Records(DATA, rank, 2)
    print([records.read(index)[1] for index in range(len(records))])
"""


def test_every_shared_module_is_imported_by_python_3_7(trainer_of):
    assert len(SHARED) > 20
    code = f"""
import importlib, sys
[importlib.import_module(one) for one in {sorted(SHARED)}]
print(sys.version_info[:2])"""
    assert trainer_of(OLDEST).said("-c", code) == "(3, 7)\n"


def test_weights_batches_and_records_are_the_same_there_as_here(trainer_of, records):
    workloads = ("resnet50", "vgg16", "alexnet", "bert-base")
    recipes = [(recipe_of(one).__name__, small("", workload=one)["shape"]) for one in workloads]
    code = f"RECIPES, DATA = {recipes}, {str(records('tfrecord'))!r}\n{MADE}"
    here = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TRAINERS.parent)},
    )
    assert len(here.stdout.splitlines()) == len(workloads) + 2
    assert trainer_of(OLDEST).said("-c", code) == here.stdout
