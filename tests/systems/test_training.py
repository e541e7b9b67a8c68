"""Every system really trains, and all of them train the same thing.

A framework takes seconds to start: what one run can show is asked of one run.
"""

import json
import signal
from itertools import pairwise

import pytest
from loaders import COLOURS, LOADERS
from reperf.systems import load_workloads
from trainer import limited_memory, losses, step_log, trained_by

WORLD_SIZE = 2

# Images of which the first layer's outputs need more than six gigabytes.
TOO_MANY = 25_000
# Its convolutions crash without memory; of so many images it cannot make floating-point numbers.
TOO_MANY_FOR = {"tensorflow2": 60_000}

# Ranks that wait for another no longer than 30 s, which a run's time limit may outlast.
GIVES_UP = {"paddlepaddle"}


@pytest.fixture(scope="session")
def trainers(trainer_of):
    """The systems' trainers, each made once: a call with its name gives it."""
    made = {}
    return lambda name: made.get(name) or made.setdefault(name, trainer_of(name))


@pytest.fixture(scope="session")
def proofs(trainers):
    """Runs of two ranks, each on eight images of its own, each trained once: record and log."""
    done = {}

    def run(system, workload):
        if (system, workload) not in done:
            done[system, workload] = trainers(system).train(
                workload=workload, more_flags=("--proof",)
            )
        return done[system, workload]

    return run


def test_two_processes_train_the_agreed_model_and_end_with_equal_weights(
    system, workload, proofs, trainers
):
    record, log = proofs(system, workload)
    assert (record.status, record.reason) == ("ok", ""), log[-5000:]
    said, steps = step_log(log)
    parameters = load_workloads()[workload].parameters_of({"image_size": 64})
    assert said["parameters"] == parameters
    assert said["world_size"] == WORLD_SIZE
    assert said["global_batch_size"] == 16
    assert len(said["weight_digests"]) == len(said["devices"]) == WORLD_SIZE
    assert len(set(said["weight_digests"])) == 1
    assert min(said["peak_memory_bytes"]) > 4 * 3 * parameters  # weights, gradients, momentum
    assert [step["iteration"] for step in steps] == list(range(1, 7))
    assert [step["samples"] for step in steps] == list(range(16, 97, 16))
    assert all(earlier["seconds"] < later["seconds"] for earlier, later in pairwise(steps))
    assert record.loader_threads == 1
    assert str(record.computed_in) == "float32"
    for rank in range(WORLD_SIZE):
        assert f"rank {rank}: done" in log
        assert losses(log, rank)[-1] < losses(log, rank)[0] - 0.4


def test_the_same_start_and_the_same_steps_give_the_same_losses_in_every_framework(
    system, workload, proofs
):
    """Rounding errors change the sixth loss by 2e-4 or less.

    Without decay a loss is 1e-2 away or more, as with another momentum, rate or smoothing; with
    dropout 3e-1. Decay that leaves out the biases of models without batch norm does not show.
    """
    for rank in range(WORLD_SIZE):
        ours, pytorchs = (losses(proofs(one, workload)[1], rank) for one in (system, "pytorch"))
        assert ours[0] == pytest.approx(pytorchs[0], abs=1e-4)
        assert ours == pytest.approx(pytorchs, abs=1e-3)


def test_a_rank_that_dies_ends_a_run_on_records_whose_ranks_read_different_images(
    system, trainers, records
):
    trainer = trainers(system)
    workload = trained_by(trainer.system)[-1]
    form = trainer.system.workloads[workload].reads[0]
    with trainer.disturbed(signal.SIGKILL, rank=1, iteration=2):
        record, log = trainer.train(
            workload=workload, input=form, data=str(records(form)), batch_size=2, iterations=100_000
        )
    assert record.status == "failed", log[-5000:]
    assert "SIGKILL" in record.reason
    assert losses(log, 0)[0] != losses(log, 1)[0]


def test_a_rank_that_hangs_ends_a_run_on_records_at_its_time_limit(
    system, trainers, proofs, records
):
    trainer = trainers(system)
    workload = trained_by(trainer.system)[0]
    form = trainer.system.workloads[workload].reads[0]
    record, _ = proofs(system, workload)
    # Longer than a start and some iterations take, even if other tests keep the machine busy now.
    limit = round(2 * record.seconds + 15)
    with trainer.disturbed(signal.SIGSTOP, rank=1, iteration=2):
        record, log = trainer.train(
            limit,
            workload=workload,
            input=form,
            data=str(records(form)),
            batch_size=2,
            iterations=100_000,
        )
    assert record.status == "timeout", log[-5000:]
    early = system in GIVES_UP and record.seconds < limit
    end = "a rank gave up waiting for another" if early else f"no end after {limit} s"
    assert record.reason.startswith(f"{end}; ")
    assert "last heard of at iteration" in record.reason


def test_a_batch_that_memory_cannot_hold_is_said_to_be_so(system, trainers):
    batch_size = TOO_MANY_FOR.get(system, TOO_MANY)
    with limited_memory(6):
        record, log = trainers(system).train(topology="1n1g", batch_size=batch_size)
    assert record.status == "oom", log[-5000:]


def test_the_ranks_share_the_records_and_see_the_folders_images_and_labels(
    system, trainers, coloured_records
):
    """The colours and labels that a system's own loader gives are those of the images."""
    trainer = trainers(system)
    form = trainer.system.workloads["resnet50"].reads[0]
    arguments = [
        *("--workload=resnet50", "--precision=fp32", "--batch-size=8", "--iterations=1"),
        *("--print-every=1", f"--input={form}", f"--data={coloured_records(form)}"),
        *("--shape", "image_size=32", "--device=cpu", "--threads=1", "--seed=1"),
    ]
    ranks = trainer.answer(f"""
import itertools, json, numpy as np
from trainers.contract.flags import parse_flags
from trainers.recipes import resnet50
flags = parse_flags(resnet50, {arguments})
{LOADERS[system]}
print(json.dumps([
    [
        (np.asarray(image, float).reshape(-1, 3).mean(0).tolist(), int(label))
        for images, labels in itertools.islice(batches(flags, rank, {WORLD_SIZE}), 8)
        for image, label in zip(np.asarray(images), np.asarray(labels).reshape(-1))
    ]
    for rank in range({WORLD_SIZE})
]))""")
    for given in ranks:
        for colour, label in given:
            assert colour == pytest.approx(COLOURS[label], abs=4), json.dumps(given)
    seen = [{label for _, label in given} for given in ranks]
    assert seen[0] | seen[1] == set(range(len(COLOURS)))
    assert not seen[0] & seen[1]


def test_what_drops_out_is_drawn_anew_in_each_step_but_for_a_proof(system, dropping, trainers):
    """With a rate of zero nothing else changes the loss on one batch."""
    trainer = trainers(system)
    program = str(trainer.system.trainer(dropping))
    arguments = [
        *(f"--workload={dropping}", "--precision=fp32", "--batch-size=2", "--iterations=3"),
        *("--print-every=1", "--input=synthetic", "--shape", "image_size=64"),
        *("--device=cpu", "--threads=1", "--seed=1"),
    ]
    for more, different in (((), 3), (("--proof",), 1)):
        code = f"""
import runpy, sys
from trainers.recipes import {dropping}
{dropping}.learning_rate = lambda global_batch: 0.0
sys.argv = {[program, *arguments, *more]}
runpy.run_path(sys.argv[0], run_name="__main__")"""
        said = trainer.python("-c", code)
        assert said.returncode == 0, said.stdout
        assert len(set(losses(said.stdout, 0))) == different


def test_a_gpu_that_is_not_there_is_refused(system, trainers):
    trainer = trainers(system)
    program = str(trainer.system.trainer("resnet50"))
    said = trainer.python(
        *(program, "--workload=resnet50", "--precision=amp", "--batch-size=2", "--iterations=1"),
        *("--print-every=1", "--input=synthetic", "--shape", "image_size=32"),
        *("--device=cuda", "--threads=1", "--seed=1"),
    )
    (line,) = [line for line in said.stdout.splitlines() if line.startswith(":::REFUSED")]
    assert said.returncode == 1
    assert "GPU" in line
    assert "Traceback" not in said.stdout


@pytest.mark.every_system
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xdist_group(name))
        for name in ("mxnet", "ngc-tensorflow1")
    ],
)
def test_horovod_without_nccl_is_refused_on_gpus(name, trainers):
    """The locks here build it without, because the machines of the tests have no CUDA."""
    trainer = trainers(name)
    said = trainer.answer(f"""
import json
from argparse import Namespace
import horovod.{trainer.system.framework} as hvd
from trainers.contract.steplog import Refused
from trainers.frameworks.horovod import check_horovod
check_horovod(hvd, Namespace(device="cpu"), 2)
check_horovod(hvd, Namespace(device="cuda"), 1)
try:
    check_horovod(hvd, Namespace(device="cuda"), 2)
except Refused as error:
    print(json.dumps(str(error)))""")
    assert said.startswith("Horovod is built without NCCL")
