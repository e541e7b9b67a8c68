"""What all frameworks share runs on the oldest Python of any build: 3.7, TensorFlow 1.15's."""

import json
import os
import subprocess
import sys

import pytest
from reperf.systems import TRAINERS

from tests.systems.trainer import recipe_of, small, step_log

OLDEST = "ngc-tensorflow1"
pytestmark = [pytest.mark.every_system, pytest.mark.xdist_group(OLDEST)]

NEEDS_MORE = {"trainers.launchers.paddle", "trainers.inputs.dali", "trainers.inputs.jpegs"}
"""Modules that need a package besides those of the environment."""
SHARED = {
    ".".join(path.relative_to(TRAINERS.parent).with_suffix("").parts)
    for folder in ("contract", "inputs", "launchers", "recipes")
    for path in (TRAINERS / folder).glob("*.py")
} - NEEDS_MORE

# One rank, from its flags to the end of its log, without a framework.
RANK = """
import json, os, sys
from trainers.contract import driver, process, weights
from trainers.contract.backend import Backend, place_in
from trainers.contract.flags import parse_flags
from trainers.contract.steplog import StepLog
from trainers.inputs.tfrecord import Records
from trainers.recipes import {recipe} as trained
def say(said):  # in one write: an unbuffered print makes several, and the ranks share a pipe
    os.write(1, ("said " + json.dumps(said) + "\\n").encode())
place = place_in("RANK", "LOCAL_RANK", "WORLD_SIZE")
number, count = place.rank, place.world_size
flags = parse_flags(trained)
log = StepLog(trained, flags, number, count)
with log.to_the_end():
    process.keep_to_own_cores(number, flags.threads)
    backend = Backend(flags, place._replace(world_size=1))
    work = driver.Work(trained, flags, log.global_batch, {{"cpu": ("bfloat16",)}})
    arrays = {{name: work.start(name) for name in work.shapes}}
    groups = work.groups(work.named(arrays.values()))
    batch = weights.synthetic_batch(trained, flags, number)
    records = Records(flags.data, number, count)
    read = [records.read(index)[1] for index in range(len(records))]
    digests = [weights.digest(arrays.values()), weights.digest(batch)]
    say([number, digests, read])
    parameters = sum(array.size for group in groups for array in group["params"])
    log.configured(parameters, "none", {{}}, ["cpu"] * count, work.precision)
    watched = weights.Watched(log, arrays.items)
    for iteration in range(1, flags.iterations + 1):
        if log.prints(iteration):
            log.step(iteration, 1.0, None)
    next(iter(arrays.values()))[...] += 0.5
    changes = watched.changes(backend, "all")
    digest = watched.digest()
    say([number, [digest], ["%.5g" % change for change in changes]])
    log.finished([["all", digest]] * count, [process.peak_memory()] * count, changes)
"""


def test_the_oldest_is_as_old_as_is_said(trainer_of):
    assert trainer_of(OLDEST).answer("import sys; print(list(sys.version_info[:2]))") == [3, 7]


def test_every_shared_module_is_imported(trainer_of):
    assert len(SHARED) > 20
    code = f"import importlib; [importlib.import_module(one) for one in {sorted(SHARED)}]"
    said = trainer_of(OLDEST).python("-c", code)
    assert (said.returncode, said.stdout) == (0, "")


@pytest.mark.parametrize("workload", ["resnet50", "vgg16", "alexnet", "bert-base"])
def test_ranks_start_and_log_the_same_there_as_here(workload, trainer_of, records, tmp_path):
    program = tmp_path / f"{workload}.py"
    recipe = recipe_of(workload).__name__.rpartition(".")[2]
    program.write_text(RANK.format(recipe=recipe))
    shape = [f"{name}={number}" for name, number in small("", workload=workload)["shape"].items()]
    command = [
        *(str(program), f"--workload={workload}", "--shape", *shape, "--precision=amp"),
        *("--batch-size=2", "--iterations=4", "--print-every=2", "--input=tfrecord", "--proof"),
        *(f"--data={records('tfrecord')}", "--device=cpu", "--threads=1", "--seed=1"),
    ]
    ranks = [{"RANK": str(rank), "WORLD_SIZE": "2"} for rank in range(2)]
    starter = f"from trainers.launchers.ranks import run_ranks; run_ranks({command}, {ranks}, 0)"
    there = trainer_of(OLDEST).python("-c", starter)
    here = subprocess.run(
        [sys.executable, "-c", starter],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TRAINERS.parent)},
    )
    for answer in (there, here):
        assert answer.returncode == 0, answer.stdout
        said, steps = step_log(answer.stdout)
        assert said["precision"]["compute"] == "bfloat16"
        assert [step["iteration"] for step in steps] == [2, 4]
        assert "rank 1: done" in answer.stdout
    assert said_by(there.stdout) == said_by(here.stdout)


def said_by(text: str) -> list:
    """What the ranks made and read, in their order."""
    return sorted(json.loads(line[5:]) for line in text.splitlines() if line.startswith("said "))
