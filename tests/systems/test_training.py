"""Every system really trains, and all of them train the same thing."""

import json
import signal
from itertools import pairwise

import pytest
from loaders import COLOURS, LOADERS
from trainer import limited_memory, losses, step_log

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
def fixed_runs(trainers):
    """Runs of two processes on sixteen fixed images, each trained once: record and log."""
    done = {}

    def run(name):
        if name not in done:
            done[name] = trainers(name).train()
        return done[name]

    return run


def test_two_processes_train_the_agreed_model_and_end_with_equal_weights(system, fixed_runs):
    record, log = fixed_runs(system)
    assert (record.status, record.reason) == ("ok", ""), log[-5000:]
    said, steps = step_log(log)
    assert said["parameters"] == 25557032
    assert said["world_size"] == WORLD_SIZE
    assert said["global_batch_size"] == 16
    assert len(said["weight_digests"]) == len(said["devices"]) == WORLD_SIZE
    assert len(set(said["weight_digests"])) == 1
    assert min(said["peak_memory_bytes"]) > 4 * 3 * 25557032  # weights, gradients, momentum
    assert [step["iteration"] for step in steps] == list(range(1, 9))
    assert [step["samples"] for step in steps] == list(range(16, 129, 16))
    assert all(earlier["seconds"] < later["seconds"] for earlier, later in pairwise(steps))
    for rank in range(WORLD_SIZE):
        assert f"rank {rank}: done" in log


@pytest.mark.parametrize("rank", range(WORLD_SIZE))
def test_the_loss_on_sixteen_fixed_images_falls(system, fixed_runs, rank):
    _, log = fixed_runs(system)
    assert losses(log, rank)[-1] < losses(log, rank)[0] - 0.5


@pytest.mark.parametrize("rank", range(WORLD_SIZE))
def test_the_same_weights_give_the_same_first_loss_in_every_framework(system, fixed_runs, rank):
    ours, pytorchs = (losses(fixed_runs(name)[1], rank) for name in (system, "pytorch"))
    assert ours[0] == pytest.approx(pytorchs[0], abs=1e-3)


@pytest.mark.parametrize("rank", range(WORLD_SIZE))
def test_the_optimizer_takes_the_same_steps_in_every_framework(system, fixed_runs, rank):
    """Momentum, decay, rate, smoothing and averaging decide what the losses are after steps."""
    ours, pytorchs = (losses(fixed_runs(name)[1], rank) for name in (system, "pytorch"))
    assert ours[1:4] == pytest.approx(pytorchs[1:4], abs=2e-2)


def test_a_rank_that_dies_ends_a_run_on_records_whose_ranks_read_different_images(
    system, trainers, records
):
    trainer = trainers(system)
    form = trainer.system.reads[0]
    with trainer.disturbed(signal.SIGKILL, rank=1, iteration=2):
        record, log = trainer.train(
            input=form, data=str(records(form)), batch_size=2, iterations=100_000
        )
    assert record.status == "failed"
    assert "SIGKILL" in record.reason
    assert losses(log, 0)[0] != losses(log, 1)[0]


def test_a_rank_that_hangs_ends_the_run_at_its_time_limit(system, trainers, fixed_runs):
    record, _ = fixed_runs(system)
    # Longer than a start and some iterations take, even if other tests keep the machine busy now.
    limit = round(2 * record.seconds + 15)
    with trainers(system).disturbed(signal.SIGSTOP, rank=1, iteration=2):
        record, log = trainers(system).train(limit, batch_size=2, iterations=100_000)
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
    form = trainer.system.reads[0]
    seen = []
    for rank in range(WORLD_SIZE):
        arguments = [
            *("--workload=resnet50", "--precision=fp32", "--batch-size=8", "--iterations=1"),
            *("--print-every=1", f"--input={form}", f"--data={coloured_records(form)}"),
            *("--image-size=32", "--device=cpu", "--threads=1", "--seed=1"),
        ]
        given = trainer.answer(f"""
import itertools, json, numpy as np, steplog
flags = steplog.parse_flags({arguments})
{LOADERS[system]}
print(json.dumps([
    (np.asarray(image, float).reshape(-1, 3).mean(0).tolist(), int(label))
    for images, labels in itertools.islice(batches(flags, {rank}, {WORLD_SIZE}), 8)
    for image, label in zip(np.asarray(images), np.asarray(labels).reshape(-1))
]))""")
        for colour, label in given:
            assert colour == pytest.approx(COLOURS[label], abs=4), json.dumps(given)
        seen.append({label for _, label in given})
    assert seen[0] | seen[1] == set(range(len(COLOURS)))
    assert not seen[0] & seen[1]
