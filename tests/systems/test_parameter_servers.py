"""Parameter servers train what plain SGD in numpy does, and say what has died.

Proofs start from a table that is not zero, so that a block of it at a wrong place shows.
"""

import signal
import socket
from argparse import Namespace
from itertools import islice

import numpy as np
import pytest
from trainers.contract.weights import synthetic_batch
from trainers.inputs.words import word_batches
from trainers.recipes import word2vec

from tests.systems.cases import case
from tests.systems.plain_sgd import ctr_losses, word2vec_losses
from tests.systems.trainer import losses, own_steps, step_log

# One process tests Paddle, whose environment no other system has; the stand-in's servers are CI's.
pytestmark = pytest.mark.weekly
PADDLE = pytest.mark.xdist_group("paddle-fleet")
PROOF = ("--proof",)
ALONE = {"topology": "1n1g", "together": True}

# Paddle's, of the tables that are cut over two servers: 10,000 rows each.
FLEET = {"batch_size": 64, "iterations": 20, "servers": {"per_node": 2}, "more_flags": PROOF}
CTR = {"workload": "ctr", "shape": {"rows": 20_000, "embedding": 10, "hidden": 32}}
WORDS = {
    "workload": "word2vec",
    "shape": {"vocabulary": 2000, "width": 32, "window": 5, "negatives": 5},
}
PUSHED = {"variant": "geo", "more_flags": (*PROOF, "--push-every=1")}
"""GEO that pushes each step trains exactly as plain SGD does."""

# TensorFlow's.
SLOTS = {"rows": 1000, "embedding": 4, "hidden": 32}
SMALL_CTR = {"workload": "ctr", "shape": SLOTS, "batch_size": 50, "iterations": 20}
V1 = {"variant": "v1", "together": True}


@pytest.fixture
def fleet(trainer_of):
    return trainer_of("paddle-fleet")


@pytest.fixture
def tensorflow(trainer_of):
    return trainer_of("tensorflow-ps")


def plain(workload: str, shape: dict[str, int], ranks: int) -> list[float]:
    """The ranks' mean losses of plain SGD on the batches of all of them."""
    if workload == "ctr":
        return ctr_losses(shape, 64, ranks, 20).mean(axis=1).tolist()
    flags = Namespace(shape=shape, batch_size=64, seed=1)
    batches = [synthetic_batch(word2vec, flags, rank) for rank in range(ranks)]
    together = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    return word2vec_losses(shape, 20 * [together], proof=True)


@PADDLE
@pytest.mark.parametrize(("trained", "trainers"), [(CTR, 1), (CTR, 2), (WORDS, 2)])
def test_in_step_trainers_train_as_plain_sgd_on_the_batches_of_all_does(fleet, trained, trainers):
    record, log = fleet.train_well(**FLEET, **trained, topology=f"1n{trainers}g")
    wanted = plain(*trained.values(), trainers)
    own = np.mean([losses(log, rank) for rank in range(trainers)], axis=0)
    assert own == pytest.approx(wanted, abs=1e-4)
    assert wanted[0] - wanted[-1] > 0.02  # so far does it learn
    assert record.settings["runtime_split_send_recv"] == "0"
    assert ("server program" in record.settings) == (trainers > 1)
    facts, steps = step_log(log)
    assert [step["samples"] for step in steps] == [64 * trainers * count for count in range(1, 21)]
    assert len(facts["weight_digests"]) == trainers
    assert len(set(facts["weight_digests"])) == 1


@PADDLE
@pytest.mark.parametrize(
    ("trained", "how", "near"),
    [(CTR, {"variant": "async"}, 0.005), (CTR, PUSHED, 1e-4), (WORDS, PUSHED, 1e-4)],
)
def test_one_trainer_in_its_own_time_trains_nearly_as_plain_sgd_does(fleet, trained, how, near):
    record, log = fleet.train_well(**FLEET | ALONE | trained | how)
    wanted, own = plain(*trained.values(), 1), losses(log, 0)
    assert own[0] == pytest.approx(wanted[0], abs=1e-4)
    assert own[-1] == pytest.approx(wanted[-1], abs=near)
    pulls_apart = "0" if how["variant"] == "async" else None
    assert record.settings.get("communicator_independent_recv_thread") == pulls_apart


def test_trainers_in_their_own_time_log_each_and_learn_on_clicks(fleet, converted):
    """Each pushes what it has changed every five iterations, and reads lines of its own."""
    changes = {"variant": "geo", "together": True, "iterations": 60, "print_every": 5}
    changes |= {"input": "rows", "data": str(converted("clicks", "rows"))}
    changes |= {"more_flags": ("--push-every=5",)}
    record, log = fleet.train_well(**FLEET | CTR | changes)
    assert record.not_compared.startswith("the trainers' last weights: ")
    for rank in (0, 1):
        own = own_steps(log, rank)
        # Who comes first to the end trains on, and logs it.
        assert [one["samples"] for one in own][:12] == [64 * count for count in range(5, 61, 5)]
        assert sum(one["loss"] for one in own[-4:]) < sum(one["loss"] for one in own[:4])
    assert log.count('"key": "run_stop"') == 2


def test_a_run_that_would_push_nothing_is_refused(fleet):
    record, _ = fleet.train(**FLEET | ALONE | CTR | {"variant": "geo"})
    assert record.reason.endswith(
        "--push-every is 100; allowed: with --own-time, 1 to --iterations, 20"
    )


def test_sessions_of_one_trainer_are_plain_sgd_and_of_two_learn(tensorflow, converted):
    """To six digits, tables being cut over two servers; of two trainers the first losses are."""
    read = converted("words", "words", least_count=5, thinning=1e-3)
    shape = {"vocabulary": 1400, "width": 32, "window": 5, "negatives": 5}
    asked = {"workload": "word2vec", "shape": shape, "batch_size": 500, "iterations": 100}
    asked |= {"input": "words", "data": str(read)}

    def plain_losses(rank, ranks, count):
        read = islice(word_batches(Namespace(**asked), rank, ranks, None), count)
        return word2vec_losses(shape, list(read))

    def said(ranks, servers):
        changes = {"topology": f"1n{ranks}g", "servers": {"per_node": servers}}
        _, log = tensorflow.train_well(**asked, **V1, **changes)
        return [[one["loss"] for one in own_steps(log, rank)] for rank in range(ranks)]

    wanted = plain_losses(0, 1, 100)
    assert said(1, servers=2)[0] == pytest.approx(wanted, abs=1e-4)
    assert wanted[0] > np.mean(wanted[-10:]) + 0.5
    for rank, own in enumerate(said(2, servers=1)):
        assert own[:1] == pytest.approx(plain_losses(rank, 2, 1), abs=1e-4)
        assert np.mean(own[-10:]) < own[0] - 0.5


def test_a_coordinator_of_one_worker_is_plain_sgd_and_of_two_learns(tensorflow):
    """The first batch of two is trained on alone."""
    wanted = ctr_losses(SLOTS, 50, 1, 20)[:, 0]
    asked = SMALL_CTR | {"servers": {"per_node": 2}, "more_flags": PROOF}
    record, log = tensorflow.train_well(**asked, topology="1n1g")
    assert losses(log, 0) == pytest.approx(wanted, abs=1e-4)
    assert wanted[-1] < wanted[0] - 0.05
    assert record.settings["disable_thread_spinning"] == "1"

    _, steps = step_log(tensorflow.train_well(**asked)[1])
    assert steps[0]["loss"] == pytest.approx(wanted[0], abs=1e-4)
    assert [one["samples"] for one in steps] == [100 * count for count in range(1, 21)]
    assert steps[-1]["loss"] < steps[0]["loss"] - 0.05


SERVER_ENDED = "ended with SIGKILL, before the trainers"


@pytest.mark.parametrize(
    ("system", "changes", "victim", "reason"),
    [
        case("paddle-fleet", FLEET | CTR, "rank 1", "was ended by SIGKILL; "),
        case("tensorflow-ps", SMALL_CTR | V1, "server 0", SERVER_ENDED),
        case("tensorflow-ps", SMALL_CTR, "server 0", SERVER_ENDED),
        case("tensorflow-ps", SMALL_CTR | V1, "rank 1", "was ended by SIGKILL; "),
    ],
)
def test_a_process_that_is_killed_ends_the_run_and_is_named(
    system, changes, victim, reason, trainer_of
):
    """Soon: its peers would train for hours, or wait for it in silence."""
    endless = {"servers": {"per_node": 1}, "iterations": 1_000_000, "print_every": 20}
    trainer = trainer_of(system)
    with trainer.disturbed(signal.SIGKILL, 1, 20, victim):
        record, log = trainer.train(**changes | endless, time_limit=200)
    assert record.status == "failed", log[-5000:]
    assert record.reason.startswith(f"{victim} on {socket.gethostname()} {reason}")
